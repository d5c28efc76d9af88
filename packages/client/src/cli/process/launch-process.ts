import { randomUUID } from "node:crypto";
import { SandboxError } from "@turnbox/core";
import type { Process } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { CALL_MS } from "../deadline.ts";
import type { SandboxLink } from "../resolve/sandbox-link.ts";

export interface Program {
  readonly binary: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Empty means /workspace. */
  readonly cwd: string;
  /** 0 exposes none. */
  readonly exposePort: number;
  /** Absent means pipes. */
  readonly terminal?: { readonly columns: number; readonly rows: number };
}

const KILL_MS = 5000;

/** Starts it once, also where the answer has to be asked for again. */
export async function launchProcess(
  link: SandboxLink,
  { binary, args, env, cwd, exposePort, terminal }: Program,
  { signal }: { readonly signal: AbortSignal },
): Promise<Process> {
  const idempotencyKey = randomUUID();
  const { process } = await link.use(({ host, sessionId }) =>
    host.processes.launchProcess(
      {
        idempotencyKey,
        sessionId,
        binary,
        args: [...args],
        env: { ...env },
        cwd,
        exposePort,
        ...(terminal === undefined ? {} : { terminal }),
      },
      { signal, timeoutMs: CALL_MS.change },
    ),
  );
  if (process === undefined) throw new SandboxError("INTERNAL", "the host started a process and did not say which");
  return process;
}

/** Runs `work`; where it does not come to its end, the process shall not go on without anybody. */
export async function orKill<T>(
  link: SandboxLink,
  { processId, signal }: { readonly processId: string; readonly signal: number },
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    // Cleanup has its own deadline, and what went wrong first is what is told.
    await link
      .use(({ host, sessionId }) =>
        host.processes.killProcess({ sessionId, processId, signal }, { timeoutMs: KILL_MS }),
      )
      .catch(() => undefined);
    throw thrown;
  }
}
