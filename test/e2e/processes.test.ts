import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Client } from "@connectrpc/connect";
import {
  type Process,
  ProcessExitReason,
  ProcessService,
  ProcessState,
} from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { startHost, type TestHost } from "../support/host.ts";
import { hostClient } from "../support/host-client.ts";
import { bash, createSession, script } from "../support/host-calls.ts";
import { poll, run } from "../support/process.ts";
import { findPool } from "../support/residue.ts";

const SESSION = "s";
/** Prints the pid of the process whose script says `got`. */
const PID_OF_GOT = "ps | grep '[g]ot .line' | { read -r pid rest; echo $pid; }";
let host: TestHost;
beforeAll(async () => {
  host = await startHost();
  await createSession(host, SESSION);
}, 120_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
}, 120_000);

/** A client of the host as it is served now. */
const client = (): Client<typeof ProcessService> => hostClient(host, ProcessService);

async function launch(script: string, more: object = {}): Promise<string> {
  const request = { sessionId: SESSION, binary: "bash", args: ["-c", script], ...more };
  const { process } = await client().launchProcess(request);
  expect(process?.state).toBe(ProcessState.RUNNING);
  return process?.processId ?? "";
}

interface Read {
  readonly text: string;
  readonly next: number;
  readonly exited: Process | undefined;
}

async function read(processId: string, offset = 0, follow = false): Promise<Read> {
  const chunks: Uint8Array[] = [];
  let next = offset;
  let exited: Process | undefined;
  for await (const piece of client().readOutput({ sessionId: SESSION, processId, offset: BigInt(offset), follow })) {
    expect(piece.droppedBytes).toBe(0n);
    expect(piece.offset).toBe(BigInt(next));
    chunks.push(piece.data);
    next += piece.data.length;
    exited = piece.exited;
  }
  return { text: Buffer.concat(chunks).toString("utf8"), next, exited };
}

const status = async (processId: string): Promise<Process | undefined> =>
  (await client().getProcessStatus({ sessionId: SESSION, processId })).process;

const typed = async (processId: string, offset: number, text: string): Promise<number> =>
  Number(
    (await client().writeInput({ sessionId: SESSION, processId, offset: BigInt(offset), data: Buffer.from(text) }))
      .acceptedBytes,
  );

describe("a launched process", () => {
  it("goes on over a kill -9 of the host with its journal, its input and its exit code", async () => {
    const loop = 'i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo "line $i"; sleep 0.02; done';
    const processId = await launch(`${loop}; while read -r line; do echo "got $line"; done; echo err >&2; exit 42`);
    const first = await poll("some lines", async () => {
      const seen = await read(processId);
      return seen.text.includes("line 10\n") ? seen : undefined;
    });
    expect(await typed(processId, 0, "one\ntw")).toBe(6);
    const pid = await script(host, SESSION, PID_OF_GOT);
    expect(pid).toMatch(/^\d+\n$/);
    await host.kill();
    await host.start();
    expect(await script(host, SESSION, PID_OF_GOT)).toBe(pid);
    expect(await status(processId)).toMatchObject({ state: ProcessState.RUNNING, inputBytes: 6n, generation: 1 });
    // What was accepted is sent again, as by a caller that has not heard the answer, and has no effect.
    expect(await typed(processId, 0, "one\ntwo\n")).toBe(8);
    await client().closeInput({ sessionId: SESSION, processId });
    await client().closeInput({ sessionId: SESSION, processId });
    const rest = await read(processId, first.next, true);
    const lines = Array.from({ length: 100 }, (_, index) => `line ${index + 1}\n`);
    expect(first.text + rest.text).toBe(`${lines.join("")}got one\ngot two\nerr\n`);
    expect(rest.exited).toMatchObject({ exitCode: 42, exitReason: ProcessExitReason.EXITED, exitSignal: 0 });
    expect((await read(processId)).text).toBe(first.text + rest.text);
  }, 120_000);

  it("that ended while the host was down has an exit code afterwards", async () => {
    const processId = await launch("sleep 1; echo done; exit 9");
    await host.kill();
    await poll("the process to end", () => {
      const path = join(host.dataDirectory, "processes");
      return processEnded(path, processId);
    });
    await host.start();
    const seen = await read(processId, 0, true);
    expect(seen.text).toBe("done\n");
    expect(seen.exited).toMatchObject({ exitCode: 9, exitReason: ProcessExitReason.EXITED });
  }, 120_000);

  it("that floods its output is bounded, and a reader that follows loses nothing (attack 34)", async () => {
    const bytes = 64 * 1024 * 1024;
    const processId = await launch(`head -c ${bytes} /dev/zero | tr '\\0' x; echo; exit 3`);
    const { text, exited } = await read(processId, 0, true);
    expect(text.length).toBe(bytes + 1);
    expect(exited).toMatchObject({ exitCode: 3, outputBytes: BigInt(bytes + 1) });
    const dropped: bigint[] = [];
    for await (const piece of client().readOutput({ sessionId: SESSION, processId })) dropped.push(piece.droppedBytes);
    expect(dropped[0]).toBeGreaterThan(BigInt(bytes) / 4n);
  }, 240_000);

  it("that floods its output while the host is down is held up, and goes on with the host (attack 34)", async () => {
    const processId = await launch("cat /dev/zero");
    await host.kill();
    const [token = ""] = readdirSync(join(host.dataDirectory, "processes"));
    const output = join(host.dataDirectory, "mnt/.journals", token, "files", processId, "output");
    await poll("the flood to be held up", async () => {
      const before = statSync(output).size;
      await delay(500);
      return before > 128 * 1024 * 1024 && statSync(output).size === before ? true : undefined;
    });
    const held = statSync(output).size;
    // What nothing that the sandbox does can pass.
    const dataset = `${(await findPool(host.home)) ?? ""}/journals/${token}`;
    const quota = await run("zfs", ["get", "-Hp", "-o", "value", "quota", dataset]);
    expect(Number(quota.stdout)).toBe(1024 ** 3);
    expect(held).toBeLessThan(1024 ** 3);
    await host.start();
    await poll("the flood to go on", async () =>
      Number((await status(processId))?.outputBytes ?? 0) > held + 1024 ? true : undefined,
    );
    const { process } = await client().killProcess({ sessionId: SESSION, processId, signal: 9 });
    expect(process).toMatchObject({ exitSignal: 9 });
    expect(await script(host, SESSION, "echo fine")).toBe("fine\n");
  }, 120_000);

  it("is gone with all it started when it is killed, whatever it ignores (attack 37)", async () => {
    const processId = await launch(
      "trap '' TERM; (setsid bash -c \"trap '' TERM; sleep 4711 & sleep 4711\" &); sleep 4711",
    );
    const count = async (): Promise<number> =>
      Number((await bash(host, SESSION, "ps | grep -c '[s]leep 4711$'")).content);
    await poll("all of it to run", async () => ((await count()) >= 3 ? true : undefined));
    await client().killProcess({ sessionId: SESSION, processId });
    expect(await status(processId)).toMatchObject({ state: ProcessState.RUNNING });
    const { process } = await client().killProcess({ sessionId: SESSION, processId, signal: 9 });
    expect(process).toMatchObject({ exitReason: ProcessExitReason.SIGNALED, exitSignal: 9 });
    expect(await count()).toBe(0);
  }, 120_000);

  it("with a port is starting until the port accepts, and has an address (D20, D21)", async () => {
    const script = "sleep 1; exec nc -ll -p 8080 -e echo hello";
    const request = { sessionId: SESSION, binary: "bash", args: ["-c", script], exposePort: 8080 };
    const { process } = await client().launchProcess(request);
    expect(process?.state).toBe(ProcessState.STARTING);
    expect(process?.address).toMatch(/^.+:\d+$/);
    const processId = process?.processId ?? "";
    await poll("the port to accept", async () =>
      (await status(processId))?.state === ProcessState.RUNNING ? true : undefined,
    );
    await client().killProcess({ sessionId: SESSION, processId, signal: 9 });
  }, 120_000);

  it("on a terminal has its size, takes a new one and Ctrl-C, and ends with the host", async () => {
    const script = "trap 'echo interrupted' INT; stty size; while :; do sleep 0.1; done";
    const processId = await launch(script, { terminal: { columns: 91, rows: 31 } });
    const shown = async (text: string): Promise<void> => {
      await poll(text, async () => ((await read(processId)).text.includes(text) ? true : undefined));
    };
    await shown("31 91");
    const shell = await launch("exec bash --norc", { terminal: { columns: 80, rows: 24 } });
    const size = { columns: 120, rows: 40 };
    await client().resizeTerminal({ sessionId: SESSION, processId: shell, size });
    expect(await typed(shell, 0, "stty size; exit 5\n")).toBe(18);
    const { text, exited } = await read(shell, 0, true);
    expect(text).toContain("40 120");
    expect(exited).toMatchObject({ exitCode: 5, terminal: true });
    expect(await typed(processId, 0, "\u0003")).toBe(1);
    await shown("interrupted");
    await host.kill();
    await host.start();
    expect(await status(processId)).toMatchObject({ exitReason: ProcessExitReason.TERMINAL_CLOSED });
    expect((await bash(host, SESSION, "ps | grep -c '[i]nterrupted'")).content.trim()).toBe("0");
  }, 120_000);
});

function processEnded(path: string, processId: string): true | undefined {
  const tokens = readdirSync(path);
  return tokens.some((token) => existsSync(join(path, token, processId, "exit"))) ? true : undefined;
}
