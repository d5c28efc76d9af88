import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { CpuProfile } from "./call-tree.ts";

/** Where Node listens after SIGUSR1; one process at a time. */
const ADDRESS = "http://127.0.0.1:9229/json/list";
const SAMPLING_US = 500;
const PATIENCE_MS = 10_000;
const POLL_MS = 100;
/** A collection of everything takes a tenth of that. */
const COLLECTION_MS = 300;

const LEAVE = `setTimeout(() => process.getBuiltinModule("node:inspector").close(), 1)`;

/**
 * Has a Node process that runs sample its stacks for a while, and write what it saw to a file. By itself: a process whose
 * inspector is opened and closed a second time dies of it (Node 24).
 */
export async function startProfile(
  pid: number,
  { seconds, path }: { readonly seconds: number; readonly path: string },
): Promise<void> {
  const names = JSON.stringify([`${path}.part`, path]);
  await evaluateIn(
    pid,
    `(() => {
      const { Session } = process.getBuiltinModule("node:inspector");
      const fs = process.getBuiltinModule("node:fs");
      const [part, path] = ${names};
      const session = new Session();
      session.connect();
      session.post("Profiler.enable");
      session.post("Profiler.setSamplingInterval", { interval: ${SAMPLING_US} });
      session.post("Profiler.start");
      setTimeout(() => session.post("Profiler.stop", (error, answer) => {
        fs.writeFileSync(part, JSON.stringify(answer.profile));
        fs.renameSync(part, path);
      }), ${seconds * 1000});
    })()`,
  );
}

/** The profile that a process has written, undefined where it ended before. */
export async function readProfile(pid: number, path: string): Promise<CpuProfile | undefined> {
  const isThere = await until("a profile to be written", () =>
    Promise.resolve(existsSync(path) ? true : existsSync(`/proc/${pid}`) ? undefined : false),
  );
  return isThere ? (JSON.parse(await readFile(path, "utf8")) as CpuProfile) : undefined;
}

/**
 * Lets a Node process give back what it no longer uses whenever it is asked to: by itself it does so as late as it can.
 * Asked for once, by the same reason as above.
 */
export async function prepareCollection(pid: number): Promise<() => Promise<void>> {
  await evaluateIn(
    pid,
    `(() => {
      process.getBuiltinModule("node:v8").setFlagsFromString("--expose-gc");
      const collect = process.getBuiltinModule("node:vm").runInNewContext("gc");
      process.on("SIGUSR2", () => { collect(); });
    })()`,
  );
  return async () => {
    process.kill(pid, "SIGUSR2");
    await delay(COLLECTION_MS);
  };
}

/** Evaluates an expression in another Node process, whose inspector is open only for that time. */
async function evaluateIn(pid: number, expression: string): Promise<void> {
  const url = await until(`process ${pid} to open its inspector`, async () => {
    // Asked again and again: where the address is not free yet, Node gives up without a word.
    process.kill(pid, "SIGUSR1");
    return await inspectorUrl();
  });
  const socket = new WebSocket(url);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  if ((await evaluate(socket, "process.pid")) !== pid)
    throw new Error(`another process than ${pid} has its inspector open`);
  await evaluate(socket, expression);
  await evaluate(socket, LEAVE);
  socket.close();
  await until(`process ${pid} to close its inspector`, async () =>
    (await inspectorUrl()) === undefined ? "closed" : undefined,
  );
}

interface Answer {
  readonly id?: number;
  readonly result?: { readonly result?: { readonly value?: unknown }; readonly exceptionDetails?: unknown };
}

let lastId = 0;

async function evaluate(socket: WebSocket, expression: string): Promise<unknown> {
  const id = (lastId += 1);
  const { result } = await new Promise<Answer>((resolve, reject) => {
    const onMessage = ({ data }: MessageEvent): void => {
      const answer = JSON.parse(String(data)) as Answer;
      if (answer.id !== id) return;
      socket.removeEventListener("message", onMessage);
      resolve(answer);
    };
    socket.addEventListener("message", onMessage);
    socket.addEventListener("close", () => {
      reject(new Error("the process has ended"));
    });
    const params = { expression, returnByValue: true };
    socket.send(JSON.stringify({ id, method: "Runtime.evaluate", params }));
  });
  if (result?.exceptionDetails !== undefined) throw new Error(JSON.stringify(result.exceptionDetails));
  return result?.result?.value;
}

async function inspectorUrl(): Promise<string | undefined> {
  try {
    const response = await fetch(ADDRESS, {
      signal: AbortSignal.timeout(PATIENCE_MS),
      headers: { connection: "close" },
    });
    const [target] = (await response.json()) as readonly { readonly webSocketDebuggerUrl: string }[];
    return target?.webSocketDebuggerUrl;
  } catch {
    return undefined;
  }
}

async function until<T>(what: string, ask: () => Promise<T | undefined>): Promise<T> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  while (performance.now() < deadlineMs) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    await delay(POLL_MS);
  }
  throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
}
