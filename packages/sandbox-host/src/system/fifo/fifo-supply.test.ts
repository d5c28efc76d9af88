import { execFile, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { HelperProcess } from "../helper/helper-process.ts";
import { FifoSupply } from "./fifo-supply.ts";
import { SYSTEM_PATH } from "@turnbox/core/command";

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
  const { HostCommandRunner } = await import(process.env.MODULE);
  const countOpen = () => readdirSync("/proc/self/fd").length;
  const fill = () => {
    const held = [];
    try { for (;;) held.push(openSync("/dev/null", "r")); } catch { return held; }
  };
  const observed = [];
  const settled = () => new Promise((resolve) => setTimeout(resolve, 20));
  for (const room of [0, 1, 3, 6, 12, 20, 23, 24, 25, 26, 27, 28, 30]) {
    const runner = new HostCommandRunner();
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
  const MODULE = new URL("../command/host-command-runner.ts", import.meta.url).href;
  const args = ["-c", 'ulimit -n 96; exec "$0" --input-type=module -e "$1"', process.execPath, SCRIPT];
  const { stdout } = await promisify(execFile)("/bin/sh", args, { env: { ...process.env, MODULE }, timeout: 20_000 });
  return JSON.parse(stdout) as readonly Observed[];
}

describe("programs on fifos, when descriptors run out", () => {
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

describe("the supply of fifos", () => {
  it("makes the next batch before the last one is used up", async () => {
    const directory = await mkdtemp(join(tmpdir(), "turnbox-mkfifo-"));
    const log = join(directory, "log");
    const batches = async (): Promise<number> => (await readFile(log, "utf8")).split("\n").length - 1;
    try {
      // Says that it was called, and does it.
      const program = `#!/bin/sh\necho called >> '${log}'\nPATH='${SYSTEM_PATH}' exec mkfifo "$@"\n`;
      await writeFile(join(directory, "mkfifo"), program, { mode: 0o755 });
      const fifos = new FifoSupply({ path: directory });
      const take = async (): Promise<void> => {
        const { childEnd, stream } = await fifos.take("from_child");
        stream.destroy();
        childEnd[Symbol.dispose]();
      };
      for (let count = 0; count < 12; count += 1) await take();
      expect(await batches()).toBe(1);
      await take();
      // Closes what has been made, so it waits for what is being made.
      await fifos[Symbol.asyncDispose]();
      expect(await batches()).toBe(2);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

  it("holds nothing after its disposal, and gives nothing", async () => {
    const fifos = new FifoSupply();
    const before = await openDescriptors();
    const { childEnd, stream } = await fifos.take("from_child");
    stream.destroy();
    childEnd[Symbol.dispose]();
    expect(await openDescriptors()).toBeGreaterThan(before);
    await fifos[Symbol.asyncDispose]();
    await expect(fifos.take("from_child")).rejects.toMatchObject({ reason: "SHUTTING_DOWN" });
    expect(await openDescriptors()).toBe(before);
  });

  it.each([
    ["hold more when a lot comes through it, if there is a helper process", true],
    ["hold what it holds by itself, if there is none", false],
  ])("lets a pipe %s", async (_what, hasHelper) => {
    using helper = new HelperProcess();
    await using fifos = new FifoSupply(hasHelper ? { helper } : {});
    const { childEnd, stream } = await fifos.take("from_child");
    spawn("/bin/dd", ["if=/dev/zero", "bs=128k", "count=4000"], { stdio: ["ignore", childEnd.fd, "ignore"] });
    childEnd[Symbol.dispose]();
    let [bytes, largest] = [0, 0];
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      largest = Math.max(largest, chunk.length);
    }
    expect({ bytes, isWide: largest > 64 * 1024 }).toEqual({ bytes: 4000 * 128 * 1024, isWide: hasHelper });
  });
});

/** How many FIFOs this process has open. */
async function openDescriptors(): Promise<number> {
  const names = await readdir("/proc/self/fd");
  const targets = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => "")));
  return targets.filter((target) => target.includes("turnbox-fifo-")).length;
}
