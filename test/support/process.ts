import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

export const REPO = resolve(import.meta.dirname, "../..");

/** How much longer than on a usual machine everything may take. */
export const TIMEOUT_FACTOR = Number(process.env["TURNBOX_TEST_TIMEOUT_FACTOR"] ?? "1");

export interface Finished {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end; one that takes too long is killed and fails the test. */
export async function run(
  command: string,
  args: readonly string[],
  options: {
    readonly env?: NodeJS.ProcessEnv;
    readonly stdin?: string | Buffer;
    readonly timeoutMs?: number;
    readonly cwd?: string;
  } = {},
): Promise<Finished> {
  const child = spawn(command, [...args], {
    cwd: options.cwd ?? REPO,
    env: options.env ?? process.env,
    stdio: [options.stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  const chunks = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  for (const name of ["stdout", "stderr"] as const)
    child[name]?.on("data", (chunk: Buffer) => chunks[name].push(chunk));
  child.stdin?.on("error", () => undefined);
  child.stdin?.end(options.stdin);
  const timer = setTimeout(() => child.kill("SIGKILL"), (options.timeoutMs ?? 120_000) * TIMEOUT_FACTOR);
  const exitCode = await ended(child);
  clearTimeout(timer);
  return {
    exitCode,
    stdout: Buffer.concat(chunks.stdout).toString(),
    stderr: Buffer.concat(chunks.stderr).toString(),
  };
}

/** The exit code; 128 + n for signal n is shown as -1. */
export async function ended(child: ChildProcess): Promise<number> {
  return await new Promise((settle, fail) => {
    child.once("error", fail);
    child.once("close", (code) => {
      settle(code ?? -1);
    });
  });
}

/** Asks until the answer is not undefined, or fails with `what`. */
export async function poll<Answer>(
  what: string,
  ask: () => Promise<Answer | undefined> | Answer | undefined,
  timeoutMs = 30_000,
  everyMs = 50,
): Promise<Answer> {
  const limitMs = timeoutMs * TIMEOUT_FACTOR;
  const deadline = performance.now() + limitMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error(`not within ${limitMs} ms: ${what}`);
    await delay(everyMs);
  }
}

/** Command lines of living processes that contain `text`. */
export function processesWith(text: string): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
        return line.includes(text) ? [`${pid} ${line}`] : [];
      } catch {
        return [];
      }
    });
}
