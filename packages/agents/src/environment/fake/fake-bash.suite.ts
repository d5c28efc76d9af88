import type { ToolProgress } from "../execution-environment.ts";

/** The files of a session in memory, by path from its working directory. */
export type FakeFiles = Map<string, string>;

export interface FakeRun {
  readonly files: FakeFiles;
  readonly signal: AbortSignal;
  readonly timeoutMs: number | undefined;
  readonly onProgress: (progress: ToolProgress) => void;
}

export interface FakeExit {
  readonly content: string;
  readonly exitCode: number;
  readonly exitReason: "exited" | "timed_out";
}

/**
 * As much of a shell as the environments' suite speaks: `echo WORDS`, `echo WORDS >&2`, `echo WORDS > FILE`, `cat FILE`,
 * `exit N` and `sleep`, which lasts until it is ended, joined by `;`.
 */
export async function runFakeBash(
  script: string,
  { files, signal, timeoutMs, onProgress }: FakeRun,
): Promise<FakeExit> {
  const written = { stdout: "", stderr: "" };
  const write = (stream: "stdout" | "stderr", text: string): void => {
    onProgress({ stream, data: Buffer.from(text), offset: written[stream].length, droppedBytes: 0 });
    written[stream] += text;
  };
  const exit = (exitCode: number, exitReason: FakeExit["exitReason"] = "exited"): FakeExit => ({
    content: written.stdout + written.stderr,
    exitCode,
    exitReason,
  });
  const echo = (words: string, target: string | undefined): void => {
    if (target === undefined) write("stdout", `${words}\n`);
    else if (target === "&2") write("stderr", `${words}\n`);
    else files.set(target.trim(), `${words}\n`);
  };
  for (const command of script.split(/;\s*/)) {
    const [, verb, words = "", target] = /^(\w+) (.*?)(?: >(.+))?$/.exec(command) ?? [];
    if (verb === "echo") echo(words, target);
    else if (verb === "cat") {
      const content = files.get(words);
      if (content === undefined) return exit(1);
      write("stdout", content);
    } else if (verb === "sleep") {
      if (timeoutMs !== undefined) return exit(124, "timed_out");
      await aborted(signal);
    } else return exit(verb === "exit" ? Number(words) : 127);
  }
  return exit(0);
}

async function aborted(signal: AbortSignal): Promise<never> {
  signal.throwIfAborted();
  return await new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason as Error), { once: true });
  });
}
