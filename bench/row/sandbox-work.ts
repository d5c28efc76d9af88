import type { Fork, Sandbox } from "@turnbox/client";

/** How a tool is called: as the one call of the protocol, or as a program of the client library does it. */
export type Way = "rpc" | "library";

/** The sandbox's name on its host. */
export function sessionIdOf({ id }: Sandbox): string {
  return id.slice(id.lastIndexOf(":") + 1);
}

export interface ChangeRequest {
  readonly files: number;
  /** What each holds afterwards, in one line. */
  readonly text: string;
  /** Below /workspace; `many` unless given. */
  readonly directory?: string;
}

/** Writes a number of small files in one command. */
export async function changeFiles(sandbox: Sandbox, { files, text, directory = "many" }: ChangeRequest): Promise<void> {
  const loop = `i=0; while [ $i -lt ${String(files)} ]; do echo '${text}' > $i; i=$((i+1)); done`;
  const { ok, stderr } = await sandbox.bash(`mkdir -p ${directory} && cd ${directory} && ${loop}`, {
    timeoutMs: 300_000,
  });
  if (!ok) throw new Error(`the files could not be written: ${stderr}`);
}

export function bornOf(forks: readonly Fork[]): readonly Sandbox[] {
  return forks.flatMap(({ sandbox }) => (sandbox === undefined ? [] : [sandbox]));
}

export function failedForks(forks: readonly Fork[]): readonly string[] {
  return forks.flatMap(({ error }) => (error === undefined ? [] : [`a fork failed: ${error.message}`]));
}

export async function destroyInParallel(sandboxes: readonly Sandbox[], lanes = 4): Promise<void> {
  const left = [...sandboxes];
  const work = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await next[Symbol.asyncDispose]();
  };
  await Promise.all(Array.from({ length: lanes }, work));
}
