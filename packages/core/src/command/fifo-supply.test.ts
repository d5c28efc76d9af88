import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";

interface Observed {
  readonly room: number;
  readonly reasons: readonly string[];
  readonly grewBy: number;
}

/**
 * Runs in a process of its own, whose descriptors run out: with each amount of room, starts a program on fifos several
 * times, and counts what stays open from the first round to the last.
 */
const SCRIPT = `
  import { closeSync, openSync, readdirSync } from "node:fs";
  const { createChildCommandRunner } = await import(process.env.MODULE);
  const countOpen = () => readdirSync("/proc/self/fd").length;
  const fill = () => {
    const held = [];
    try { for (;;) held.push(openSync("/dev/null", "r")); } catch { return held; }
  };
  const observed = [];
  const settled = () => new Promise((resolve) => setTimeout(resolve, 20));
  for (const room of [0, 1, 3, 6, 12, 20, 23, 24, 25, 26, 27, 28, 30]) {
    const runner = createChildCommandRunner();
    const reasons = new Set();
    const counts = [];
    for (let round = 0; round < 6; round += 1) {
      const held = fill();
      for (const fd of held.splice(0, room)) closeSync(fd);
      const outcome = await runner
        .run({ command: "true", args: [], deadlineMs: 5000, stdio: "fifos" })
        .then(() => "ran", (thrown) => thrown.reason ?? thrown.code);
      reasons.add(outcome);
      for (const fd of held) closeSync(fd);
      await settled();
      counts.push(countOpen());
    }
    const failed = !reasons.has("ran");
    observed.push({ room, reasons: [...reasons], grewBy: failed ? counts.at(-1) - counts[0] : 0 });
  }
  process.stdout.write(JSON.stringify(observed), () => process.exit(0));
`;

async function runOutOfDescriptors(): Promise<readonly Observed[]> {
  const MODULE = new URL("./child-command-runner.ts", import.meta.url).href;
  const args = ["-c", 'ulimit -n 96; exec "$0" --input-type=module -e "$1"', process.execPath, SCRIPT];
  const { stdout } = await promisify(execFile)("/bin/sh", args, { env: { ...process.env, MODULE }, timeout: 20_000 });
  return JSON.parse(stdout) as readonly Observed[];
}

describe("programs on fifos, where descriptors run out", () => {
  it("are refused with a reason to come back, and leave nothing open", async () => {
    const observed = await runOutOfDescriptors();
    expect(observed.some(({ reasons }) => reasons.includes("OVERLOADED"))).toBe(true);
    for (const { room, reasons, grewBy } of observed) {
      expect({ room, reasons: reasons.filter((reason) => reason !== "OVERLOADED" && reason !== "ran") }).toEqual({
        room,
        reasons: [],
      });
      expect({ room, grewBy: Math.max(0, grewBy) }).toEqual({ room, grewBy: 0 });
    }
  }, 30_000);
});
