import { writeFile } from "node:fs/promises";
import { type CommandResult, randomToken, SandboxError } from "@turnbox/core";
import { type GvisorContext, runsc, sandboxOf } from "../context.ts";
import { execFiles, removeExecFiles } from "./exec-files.ts";
import { createProcessSpec } from "../container/oci-spec.ts";
import { type ExecRecord, findLeadersArgv, signalArgv, sweepArgv, type Tree, terminateArgv } from "./process-tree.ts";

const SWEEP_DEADLINE_MS = 10_000;
const TERMINATE_DEADLINE_MS = 5000;
const LOOK_DEADLINE_MS = 10_000;
const SWEEP_ATTEMPTS = 3;
/** Shorter than any marker. */
const NAME_CHARS = 16;

export interface ContainerControl {
  isLive(id: string): Promise<boolean>;
  /** Does the work while the container runs; one that was paused is paused again. */
  thawed(id: string, work: () => Promise<void>): Promise<void>;
  stop(id: string): Promise<void>;
}

/** Ends what an execution has started. */
export class TreeKiller {
  readonly #context: GvisorContext;
  readonly #container: ContainerControl;

  constructor(context: GvisorContext, container: ContainerControl) {
    this.#context = context;
    this.#container = container;
  }

  /** Asks the process group to end, and returns what there was of the tree before. */
  async terminate(id: string, tree: Tree & { readonly pid: number }): Promise<string> {
    let known = "";
    await this.#container.thawed(id, async () => {
      known = (await this.#runInside(id, terminateArgv(tree), TERMINATE_DEADLINE_MS)).stdout;
    });
    return known;
  }

  /**
   * Ends every process of the tree and verifies it from inside. If the sweep fails, the container is stopped: then the
   * tree is gone for certain.
   *
   * A process that has lost its parents, left the group and cleared its environment before the first look belongs to no
   * tree; it lives until the container stops.
   */
  async kill(id: string, tree: Tree): Promise<void> {
    if ((await this.#sweep(id, sweepArgv(tree))) === "unknown") await this.#container.stop(id);
  }

  /** Sends a signal to every process of the tree. */
  async signal(id: string, tree: Tree, signal: number): Promise<void> {
    await this.#container.thawed(id, async () => {
      await this.#runInside(id, signalArgv(tree, signal), SWEEP_DEADLINE_MS);
    });
  }

  /** The markers of those executions whose own process still runs. */
  async findLed(id: string, records: readonly ExecRecord[]): Promise<ReadonlySet<string>> {
    let result: CommandResult | undefined;
    await this.#container.thawed(id, async () => {
      result = await this.#runInside(id, findLeadersArgv(records), LOOK_DEADLINE_MS);
    });
    if (result?.exitCode !== 0) {
      const cause = new Error(result?.stderr.trim());
      throw new SandboxError("RUNTIME_UNAVAILABLE", `container ${id} does not tell what runs in it`, { cause });
    }
    return new Set(result.stdout.split("\n").filter((line) => line !== ""));
  }

  async #sweep(id: string, argv: readonly string[]): Promise<"gone" | "unknown"> {
    for (let attempt = 1; attempt <= SWEEP_ATTEMPTS; attempt += 1) {
      if (!(await this.#container.isLive(id))) return "gone";
      let exitCode = -1;
      const attemptOnce = async (): Promise<void> => {
        exitCode = (await this.#runInside(id, argv, SWEEP_DEADLINE_MS)).exitCode;
      };
      await this.#container.thawed(id, attemptOnce).catch(() => undefined);
      if (exitCode === 0) return "gone";
    }
    return "unknown";
  }

  /**
   * Runs one of our own programs inside. The pids that a sentry lists are those of its sandbox, so the program runs in
   * that pid namespace: next to the container, if that has pids of its own because it was booted in a spare.
   */
  async #runInside(id: string, argv: readonly string[], deadlineMs: number): Promise<CommandResult> {
    const context = this.#context;
    const sandboxId = await sandboxOf(context, id);
    const name = randomToken(NAME_CHARS);
    const files = execFiles(context.layout, id, name);
    context.ownExecs.add(name);
    try {
      await writeFile(files.processPath, JSON.stringify(createProcessSpec({ argv, env: {}, cwd: "/" })), {
        mode: 0o600,
      });
      const args = ["exec", `--process=${files.processPath}`, sandboxId];
      return await context.runner.run(runsc(context, args, deadlineMs));
    } finally {
      removeExecFiles(files);
      context.ownExecs.delete(name);
    }
  }
}
