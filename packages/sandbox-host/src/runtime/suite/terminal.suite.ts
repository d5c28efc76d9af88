import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "@jest/globals";
import type { TerminalExecution } from "../runtime.ts";
import type { Started } from "./exec.suite.ts";
import { type Argv, call, countProcesses, execSpec, type RuntimeTraits, run, sh, until } from "./harness.suite.ts";

const KiB = 1024;
const PIECE = Buffer.alloc(64 * KiB, 0x61);
/** More than the buffers of any terminal hold. */
const MOST_TAKEN_BYTES = 256 * KiB;
/** What a terminal that is not read has written to those who hold it. */
const MOST_HELD_BYTES = 1024 * KiB;
const FLOOD_BYTES = 4 * 1024 * KiB;
const SIGINT = 2;

interface Opened {
  readonly terminal: TerminalExecution;
  /** What it has shown. */
  shown(): Buffer;
}

/** Processes on terminals: who reads slowly, or not at all, holds up nothing but the terminal. */
export function terminalSuite(started: () => Started, traits: RuntimeTraits): void {
  const open = async (argv: Argv, size = { columns: 80, rows: 24 }): Promise<Opened> => {
    const { harness, container } = started();
    const terminal = await harness.runtime.openTerminal(container.id, execSpec(argv), size, call);
    const pieces: Buffer[] = [];
    terminal.onOutput((data) => pieces.push(Buffer.from(data)));
    return { terminal, shown: () => Buffer.concat(pieces) };
  };
  /** Bytes are as they are typed, and nothing reads them. */
  const openDeaf = async (before = ""): Promise<Opened> => {
    if (traits.shell === "no") return await open(started().harness.programs.waits());
    const opened = await open(["/bin/bash", "-c", `stty raw -echo; ${before} echo ready; while :; do sleep 0.1; done`]);
    await until(() => opened.shown().includes("ready"));
    return opened;
  };
  /** Types until nothing more is taken; returns how much was. */
  const fill = async ({ terminal }: Opened, data: Buffer = PIECE): Promise<number> => {
    let taken = 0;
    for (;;) {
      const more = await terminal.write(data.subarray(taken % data.length), 100);
      if (more === 0) return taken;
      taken += more;
    }
  };

  it("takes input that its program does not read up to a bound, says how much, and can be resized and ended then", async () => {
    const opened = await openDeaf();
    const taken = await fill(opened);
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(MOST_TAKEN_BYTES);
    expect(await Promise.all(Array.from({ length: 10 }, () => opened.terminal.write(PIECE, 20)))).toEqual(
      Array.from({ length: 10 }, () => 0),
    );
    opened.terminal.resize({ columns: 132, rows: 50 });
    await opened.terminal.kill();
    expect(["killed", "exited"]).toContain((await opened.terminal.exit).kind);
    expect(await opened.terminal.write(PIECE, 20)).toBe(0);
  });

  it("has its foreground signalled when it is too full for a key", async () => {
    const opened = await openDeaf("trap 'exit 5' INT;");
    await fill(opened);
    opened.terminal.signal(SIGINT);
    const exit = await opened.terminal.exit;
    expect(exit).toEqual(
      traits.shell === "no" ? { kind: "signaled", signal: SIGINT } : { kind: "exited", exitCode: 5 },
    );
  });

  it("shows a flood as a whole to a slow reader, and its program waits meanwhile", async () => {
    const { terminal, shown } = await open(started().harness.programs.floods(FLOOD_BYTES));
    terminal.hold();
    let before = -1;
    await until(async () => {
      const isStill = shown().length === before;
      before = shown().length;
      await delay(100);
      return isStill;
    });
    expect(before).toBeLessThan(MOST_HELD_BYTES);
    const seen = { isOver: false };
    void terminal.exit.then(() => {
      seen.isOver = true;
    });
    while (!seen.isOver) {
      terminal.release();
      await delay(5);
      terminal.hold();
      await delay(5);
      if (shown().length >= FLOOD_BYTES) terminal.release();
    }
    expect(await terminal.exit).toEqual({ kind: "exited", exitCode: 0 });
    expect(shown().length).toBe(FLOOD_BYTES);
  });

  it("shows the end of a program that has exited before it was read", async () => {
    const { terminal, shown } = await open(started().harness.programs.floods(150 * KiB));
    terminal.hold();
    await delay(600);
    terminal.release();
    expect(await terminal.exit).toEqual({ kind: "exited", exitCode: 0 });
    expect(shown().length).toBe(150 * KiB);
  });

  if (traits.shell === "no") return;

  it("gives its program each byte that was taken, once and in order", async () => {
    const data = Buffer.from(Array.from({ length: 200 * KiB }, (_, index) => (index * 7919 + (index >> 8)) % 256));
    const script = `stty raw -echo; echo ready; sleep 0.3; head -c ${data.length} | sha256sum`;
    const { terminal, shown } = await open(["/bin/bash", "-c", script]);
    await until(() => shown().includes("ready"));
    for (let at = 0; at < data.length; ) at += await terminal.write(data.subarray(at, at + PIECE.length), 1000);
    expect((await terminal.exit).kind).toBe("exited");
    expect(shown().toString()).toContain(createHash("sha256").update(data).digest("hex"));
  });

  it.each(["SIGKILL", "garbage"] as const)("is lost alone when what holds it has %s", async (how) => {
    const { harness, container } = started();
    const other = await open(["cat"]);
    const held = helpers();
    const seconds = String(100_000 + Math.floor(Math.random() * 800_000));
    const victim = await open(sh(`trap '' HUP; echo ready; sleep ${seconds}`));
    await until(() => victim.shown().includes("ready"));
    const [pid, ...more] = helpers().filter((one) => !held.includes(one));
    if (pid === undefined || more.length > 0) throw new Error("the terminal is not held by one process of its own");
    if (how === "SIGKILL") process.kill(pid, "SIGKILL");
    else writeFileSync(`/proc/${pid}/fd/2`, Buffer.alloc(4096, 0xff));
    expect(await victim.terminal.exit).toEqual({ kind: "terminal_lost" });
    expect(await countProcesses(harness.runtime, container.id, seconds)).toBe(0);
    expect(await victim.terminal.write(PIECE, 20)).toBe(0);
    expect(await other.terminal.write(Buffer.from("still here\n"), 1000)).toBe(11);
    await until(() => other.shown().toString().split("still here").length > 2);
    await other.terminal.kill();
    await other.terminal.exit;
    await until(() => helpers().length < held.length);
    expect((await run(harness.runtime, container.id, sh("echo well"))).stdout.toString()).toBe("well\n");
  });
}

/** The processes of this one that hold terminals. */
function helpers(): readonly number[] {
  const isHelper = (pid: string): boolean => {
    try {
      const parent = /^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
      return Number(parent) === process.pid && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("terminal-helper");
    } catch {
      return false;
    }
  };
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && isHelper(name))
    .map(Number);
}
