import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { identifyProcess, systemClock } from "@turnbox/core";
import { createInterrupts, type InterruptSignal } from "../interrupts.ts";
import { assertIsTurnboxHome, assertNothingMounted } from "../verb/reset.ts";
import { runForeground } from "./foreground-child.ts";
import { readProcessTrace } from "./process-trace.ts";
import { findRunningServer, isServerOf } from "./running-server.ts";
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

describe("readProcessTrace", () => {
  it("knows the arguments and the start of a process", async () => {
    const beforeMs = Date.now();
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    try {
      await once(child, "spawn");
      const identity = await readProcessTrace(child.pid ?? 0, Date.now());
      expect(identity?.argv).toEqual(["sleep", "60"]);
      expect(Math.abs((identity?.startedAtMs ?? 0) - beforeMs)).toBeLessThan(1500);
    } finally {
      child.kill("SIGKILL");
    }
    await once(child, "exit");
    expect(await readProcessTrace(child.pid ?? 0, Date.now())).toBeUndefined();
  });
});

describe("isServerOf", () => {
  const home = "/srv/turnbox";
  const record = { url: "http://x", pid: 9, version: "1", writtenAtMs: 1_000_000 };
  const serve = (...argv: string[]) => ({ pid: 9, argv: ["node", ...argv], startedAtMs: 999_000 });

  it.each([
    ["the orchestrator of this home", serve("/x/turnbox-orchestrator.mjs", "serve", "--home", home), true],
    ["one that bears the name and is older than the record", serve("turnbox orchestrator"), true],
    ["one that is younger than the record", { ...serve("turnbox-orchestrator.mjs"), startedAtMs: 1_003_000 }, false],
    ["any other program", serve("/srv/turnbox/editor"), false],
  ])("judges %s", (_name, identity, verdict) => {
    expect(isServerOf(identity, { home, record })).toBe(verdict);
  });
});

describe("findRunningServer", () => {
  it("finds the process that serves this home, until it has ended", async () => {
    await write("turnbox-orchestrator.mjs", "setInterval(() => {}, 1000); console.log('up')");
    const script = join(directory, "turnbox-orchestrator.mjs");
    const child = spawn(process.execPath, [script, "serve", "--home", directory], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    try {
      await once(child.stdout, "data");
      await write("server.json", JSON.stringify({ url: "http://127.0.0.1:1", pid: child.pid, version: "1" }));
      expect(await findRunningServer(directory, systemClock)).toMatchObject({ pid: child.pid });
      const identity = identifyProcess(child.pid ?? 0);
      const record = { url: "http://127.0.0.1:1", version: "1", ...identity };
      await write("server.json", JSON.stringify(record));
      expect(await findRunningServer(directory, systemClock)).toMatchObject({ pid: child.pid });
      await write("server.json", JSON.stringify({ ...record, startTicks: "1" }));
      expect(await findRunningServer(directory, systemClock)).toBeUndefined();
      await write("server.json", JSON.stringify(record));
    } finally {
      child.kill("SIGKILL");
    }
    await once(child, "exit");
    expect(await findRunningServer(directory, systemClock)).toBeUndefined();
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
    while ((await readProcessTrace(pid, Date.now())) !== undefined && Date.now() < deadlineMs)
      await systemClock.sleep(20);
    expect(await readProcessTrace(pid, Date.now())).toBeUndefined();
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
