import { superviseExecution } from "../../execution/supervise-execution.ts";
import type { ExecSpec, Execution } from "../../runtime.ts";
import { judgeExit } from "../container/liveness.ts";
import type { GvisorContext } from "../context.ts";
import { checkSpec, type StartedProcess } from "./start-process.ts";
import type { SharedLimits } from "./shared-limits.ts";
import type { TreeKiller } from "./tree-killer.ts";

export interface ExecutionsOptions {
  /** The process of an execution, of a shell that waits for it or of its own. */
  readonly start: (id: string, spec: ExecSpec, signal: AbortSignal) => Promise<StartedProcess>;
  readonly treeKiller: TreeKiller;
  readonly limits: Pick<SharedLimits, "beginCall">;
}

interface Running {
  readonly id: string;
  end: "own" | "stopped";
}

/** Looks after executions, from their start to the end of everything that they started. */
export class Executions {
  readonly #context: GvisorContext;
  readonly #options: ExecutionsOptions;
  /** Those of a container that is stopped on request end as killed, not as lost. */
  readonly #running = new Set<Running>();

  constructor(context: GvisorContext, options: ExecutionsOptions) {
    this.#context = context;
    this.#options = options;
  }

  async exec(id: string, spec: ExecSpec, signal: AbortSignal): Promise<Execution> {
    checkSpec(spec);
    const endCall = this.#options.limits.beginCall(id);
    try {
      const started = await this.#options.start(id, spec, signal);
      const record: Running = { id, end: "own" };
      this.#running.add(record);
      const execution = this.#supervise(record, started, spec.deadlineMs);
      const exit = execution.exit.finally(() => {
        this.#running.delete(record);
        started.release();
        endCall();
      });
      return { ...execution, exit };
    } catch (thrown) {
      endCall();
      throw thrown;
    }
  }

  /** Says that the container is ended on request: its executions end by that. */
  noteStop(id: string): void {
    for (const execution of this.#running) if (execution.id === id) execution.end = "stopped";
  }

  #supervise(record: Running, { command, stdout, stderr, marker, pid }: StartedProcess, deadlineMs: number): Execution {
    const { treeKiller } = this.#options;
    const { id } = record;
    let known = "";
    return superviseExecution({
      command,
      stdout,
      stderr,
      deadlineMs,
      clock: this.#context.clock,
      terminate: async () => {
        known = await treeKiller.terminate(id, { marker, pid });
      },
      killTree: async (main) => {
        await treeKiller.kill(id, main === "running" ? { marker, pid, known } : { marker, known });
      },
      judge: async (exit) => {
        this.#running.delete(record);
        if (record.end === "stopped") return { kind: "killed" };
        const verdict = await judgeExit(this.#context, id, exit);
        // The host-side command was killed, which the process inside does not notice by itself.
        if (verdict.kind === "killed") await treeKiller.kill(id, { marker, pid }).catch(() => undefined);
        return verdict;
      },
    });
  }
}
