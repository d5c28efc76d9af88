import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { identifyProcess, systemClock } from "@turnbox/core";
import { createInterrupts, type InterruptSignal } from "../interrupts.ts";
import { runForeground } from "./foreground-child.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-service-"));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const write = async (path: string, text: string): Promise<void> => {
  await mkdir(dirname(join(directory, path)), { recursive: true });
  await writeFile(join(directory, path), text);
};

describe("runForeground", () => {
  const listeners = new Map<InterruptSignal, () => void>();
  const source = {
    on: (name: InterruptSignal, listener: () => void) => listeners.set(name, listener),
    off: (name: InterruptSignal) => listeners.delete(name),
  };

  const run = async (script: string, more: { onLine?: (line: string) => void; parentGone?: () => boolean } = {}) => {
    using interrupts = createInterrupts(source, () => undefined);
    let out = "";
    const exitCode = await runForeground({
      argv: [process.execPath, "-e", script],
      env: { PATH: process.env["PATH"] ?? "" },
      interrupts,
      clock: systemClock,
      onOutput: {
        stdout: (bytes) => {
          out += Buffer.from(bytes).toString();
          more.onLine?.(out);
        },
        stderr: () => undefined,
      },
      ...(more.parentGone === undefined ? {} : { parentGone: more.parentGone }),
    });
    return { exitCode, out, aborted: interrupts.signal.aborted };
  };

  it("answers with the child's exit code, or 128 and its signal", async () => {
    expect((await run("process.exit(3)")).exitCode).toBe(3);
    expect((await run("process.kill(process.pid, 'SIGKILL')")).exitCode).toBe(137);
  });

  it("hands every signal on, and does not take it for its own", async () => {
    const script =
      "let n = 0; process.on('SIGINT', () => { console.log('int ' + ++n); if (n === 2) process.exit(9); }); setInterval(() => {}, 1000); console.log('ready')";
    const sent = new Set<string>();
    const ran = await run(script, {
      onLine: (out) => {
        for (const word of ["ready", "int 1"]) {
          if (!out.includes(word) || sent.has(word)) continue;
          sent.add(word);
          listeners.get("SIGINT")?.();
        }
      },
    });
    expect(ran).toEqual({ exitCode: 9, out: "ready\nint 1\nint 2\n", aborted: false });
  });

  it("ends the child when the parent has gone", async () => {
    let ready = false;
    const script = "process.on('SIGTERM', () => process.exit(4)); setInterval(() => {}, 1000); console.log('ready')";
    const ran = await run(script, { onLine: () => (ready = true), parentGone: () => ready });
    expect(ran.exitCode).toBe(4);
  });

  it("takes the child along when this program is killed", async () => {
    // The child of the child says its pid and then waits; its parent is killed without a chance to say so.
    const program = join(directory, "program.mjs");
    const module = join(import.meta.dirname, "foreground-child.ts");
    await write(
      "program.mjs",
      `import { runForeground } from ${JSON.stringify(module)};
       const interrupts = { redirect: () => ({ [Symbol.dispose]() {} }) };
       const clock = { sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)) };
       await runForeground({ argv: ["sh", "-c", "echo $$; exec sleep 60"], env: process.env, interrupts, clock });`,
    );
    await chmod(program, 0o755);
    const middle = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
    const [bytes] = (await once(middle.stdout, "data")) as [Buffer];
    const pid = Number(bytes.toString().trim());
    middle.kill("SIGKILL");
    const deadlineMs = Date.now() + 5000;
    while (identifyProcess(pid) !== undefined && Date.now() < deadlineMs) await systemClock.sleep(20);
    expect(identifyProcess(pid)).toBeUndefined();
  });
});
