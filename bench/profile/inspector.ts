import { setTimeout as delay } from "node:timers/promises";
import type { CpuProfile } from "./call-tree.ts";

/** Where Node listens after SIGUSR1; one process at a time. */
const ADDRESS = "http://127.0.0.1:9229/json/list";
const SAMPLING_US = 500;
const PATIENCE_MS = 10_000;
const POLL_MS = 100;

/** Kept by the process itself, so that the address is free for the next one meanwhile. */
const START = `(() => {
  const { Session } = process.getBuiltinModule("node:inspector");
  const session = new Session();
  session.connect();
  session.post("Profiler.enable");
  session.post("Profiler.setSamplingInterval", { interval: ${SAMPLING_US} });
  session.post("Profiler.start");
  globalThis.turnboxProfile = session;
})()`;
const STOP = `new Promise((resolve, reject) =>
  globalThis.turnboxProfile.post("Profiler.stop", (error, answer) =>
    error === null ? resolve(JSON.stringify(answer.profile)) : reject(error)))`;
const LEAVE = `setTimeout(() => process.getBuiltinModule("node:inspector").close(), 1)`;

/** Begins to sample the stacks of a Node process that runs. */
export async function startProfile(pid: number): Promise<void> {
  await evaluateIn(pid, START);
}

export async function stopProfile(pid: number): Promise<CpuProfile> {
  return JSON.parse(String(await evaluateIn(pid, STOP))) as CpuProfile;
}

/** Evaluates an expression in another Node process, whose inspector is open only for that time. */
async function evaluateIn(pid: number, expression: string): Promise<unknown> {
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
  const value = await evaluate(socket, expression);
  await evaluate(socket, LEAVE);
  socket.close();
  await until(`process ${pid} to close its inspector`, async () =>
    (await inspectorUrl()) === undefined ? "closed" : undefined,
  );
  return value;
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
      reject(new Error("the process that is profiled has ended"));
    });
    const params = { expression, awaitPromise: true, returnByValue: true };
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
