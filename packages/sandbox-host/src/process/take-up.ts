import type { Clock, Log } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import type { LaunchedProcess } from "./launched-process.ts";
import type { Processes } from "./processes.ts";

interface Deps {
  readonly processes: Processes;
  readonly records: Records;
  readonly registry: Registry;
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly log: Log;
}

interface Call {
  readonly signal: AbortSignal;
}

/** Takes up what an earlier service has left: processes that run, and launches that a crash interrupted. */
export async function takeUpProcesses(deps: Deps, call: Call): Promise<void> {
  const { processes, records, registry, log } = deps;
  const sessions = new Map(registry.all().map((session) => [session.row.token, session]));
  for (const row of await records.call("listProcesses", null)) {
    const session = sessions.get(row.token);
    if (session === undefined) continue;
    const process = processes.open(row);
    processes.add(session, process);
    try {
      await process.journal.recover();
      await takeUp(deps, session, { process, call });
    } catch (err) {
      log.error({ err, sessionId: session.row.id, processId: row.processId }, "a process cannot be taken up");
    }
  }
  await processes.removeUnowned(sessions);
}

async function takeUp(
  { processes, runtime, clock }: Deps,
  session: Session,
  { process, call }: { readonly process: LaunchedProcess; readonly call: Call },
): Promise<void> {
  const { row } = process;
  if (row.end !== null) return;
  if (row.terminal !== null) {
    const end = { reason: "terminal_closed", exitCode: null, signal: null, atMs: clock.nowMs() } as const;
    await processes.commit(process, { ...row, end });
    return;
  }
  await runtime.tend(process.spawned, call);
  if (row.started === "yes") return;
  // Its launch has not returned. If it came to run, it goes on; if not, its launch may come again.
  const life = await runtime.inspect(row.container, process.spawned, call);
  if (life.kind === "unknown" || life.kind === "sandbox_lost") await processes.forget(session, process, "forget");
  else await processes.commit(process, { ...row, started: "yes" });
}
