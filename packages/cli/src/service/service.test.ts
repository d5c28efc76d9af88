import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ERROR_TABLE, identifyProcess, systemClock } from "@turnbox/core";
import { readLockHolder, readServerRecord } from "@turnbox/client/internal";
import { createInterrupts, type InterruptSignal } from "../interrupts.ts";
import { assertIsTurnboxHome, assertNothingMounted } from "../verb/reset.ts";
import { runForeground } from "./foreground-child.ts";
import { parseProgramFailure } from "./program-failure.ts";
import { findPackage } from "./service-program.ts";

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

describe("findPackage", () => {
  const manifest = JSON.stringify({ version: "1.2.3", bin: { o: "./bin/o.mjs" } });

  it("looks in node_modules of each directory and above it, the nearest first", async () => {
    await write("node_modules/@turnbox/orchestrator/package.json", manifest);
    await write("node_modules/@turnbox/orchestrator/bin/o.mjs", "");
    const found = findPackage("@turnbox/orchestrator", [join(directory, "a/b/c")]);
    expect(found).toEqual({ entry: join(directory, "node_modules/@turnbox/orchestrator/bin/o.mjs"), version: "1.2.3" });
  });

  it("finds nothing where the program itself is missing", async () => {
    await write("node_modules/@turnbox/orchestrator/package.json", manifest);
    expect(findPackage("@turnbox/orchestrator", [directory])).toBeUndefined();
  });
});

describe("readLockHolder", () => {
  it("finds the living process that holds a lock, and none once it has ended or where the pid is another's", async () => {
    const path = join(directory, "orchestrator.lock");
    expect(readLockHolder(path)).toBeUndefined();
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    const identity = identifyProcess(child.pid ?? 0);
    try {
      await write("orchestrator.lock", JSON.stringify({ ...identity, nonce: "x" }));
      expect(readLockHolder(path)).toEqual(identity);
      for (const other of [{ startTicks: "1" }, { bootId: "before" }]) {
        await write("orchestrator.lock", JSON.stringify({ ...identity, ...other }));
        expect(readLockHolder(path)).toBeUndefined();
      }
      await write("orchestrator.lock", "");
      expect(readLockHolder(path)).toBeUndefined();
      await write("orchestrator.lock", JSON.stringify(identity));
    } finally {
      child.kill("SIGKILL");
    }
    await once(child, "exit");
    expect(readLockHolder(path)).toBeUndefined();
  });
});

describe("readServerRecord", () => {
  it("answers at every moment while servers write and remove their records", async () => {
    const record = JSON.stringify({ url: "http://127.0.0.1:1", pid: 4242, version: "1" });
    const script = `
      const { renameSync, rmSync, writeFileSync } = require("node:fs");
      const [file, text] = process.argv.slice(1);
      console.log("up");
      for (;;) { writeFileSync(file + ".draft", text); renameSync(file + ".draft", file); rmSync(file); }`;
    const args = ["-e", script, join(directory, "server.json"), record];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await once(child.stdout, "data");
      const seen = new Set<number | undefined>();
      for (const giveUpAt = Date.now() + 5000; seen.size < 2 && Date.now() < giveUpAt; )
        for (let look = 0; look < 1000; look += 1) seen.add(readServerRecord(directory)?.pid);
      expect(seen).toEqual(new Set([undefined, 4242]));
    } finally {
      child.kill("SIGKILL");
    }
  });
});

describe("parseProgramFailure", () => {
  it("takes reason, message and the program's own remedy, and not the table's", () => {
    const stderr = "noise\nPORT_IN_USE: 7700 is taken\nremedy: choose another\n    at frame\n";
    const error = parseProgramFailure(stderr, "?");
    expect(error).toMatchObject({ reason: "PORT_IN_USE", message: "7700 is taken" });
    expect(error.metadata).toEqual({ remedy: "choose another" });
    const usual = `COMMAND_OUTCOME_UNKNOWN: zpool hangs\nremedy: ${ERROR_TABLE.COMMAND_OUTCOME_UNKNOWN.remedy}\n`;
    expect(parseProgramFailure(usual, "?").metadata).toEqual({});
    expect(parseProgramFailure("noise", "no words")).toMatchObject({ reason: "INTERNAL", message: "no words" });
  });
});

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

describe("the safety of reset", () => {
  it("knows a home by its marks", () => {
    expect(() => {
      assertIsTurnboxHome("/srv/t", ["home.json"]);
    }).not.toThrow();
    expect(() => {
      assertIsTurnboxHome("/srv/t", []);
    }).not.toThrow();
    expect(() => {
      assertIsTurnboxHome("/srv/t", ["orchestrator.lock", "orchestrator.lock.draft-abc"]);
    }).not.toThrow();
    expect(() => {
      assertIsTurnboxHome("/srv/t", ["photos", "token"]);
    }).toThrow(/left alone/);
    expect(() => {
      assertIsTurnboxHome("/", ["home.json"]);
    }).toThrow(/left alone/);
  });

  it("refuses while something is mounted below the home, blanks in the path included", () => {
    const mountinfo = "1 2 0:3 / / rw - ext4 a rw\n4 1 0:5 / /srv/my\\040home/hosts/h/x rw - fuse z rw\n";
    expect(() => {
      assertNothingMounted("/srv/my home", mountinfo);
    }).toThrow("/srv/my home/hosts/h/x");
    expect(() => {
      assertNothingMounted("/srv/my", mountinfo);
    }).not.toThrow();
  });
});
