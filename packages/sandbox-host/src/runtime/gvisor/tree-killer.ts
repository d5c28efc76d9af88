import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CommandResult, randomToken } from "@turnbox/core";
import { type GvisorContext, runsc } from "./context.ts";
import { containerLayout } from "./layout.ts";
import { createProcessSpec } from "./oci-spec.ts";
import { sweepArgv, type Tree, terminateArgv } from "./sweep.ts";

const SWEEP_DEADLINE_MS = 10_000;
const TERMINATE_DEADLINE_MS = 5000;
const SWEEP_ATTEMPTS = 3;

/** Ends what an execution has started. */
export interface TreeKiller {
  /** Asks the process group to end, and answers with what there was of the tree before. */
  terminate(id: string, tree: Tree & { readonly pid: number }): Promise<string>;
  /**
   * Ends every process of the tree and verifies it from inside. Where the sweep fails, the container is stopped: then the
   * tree is gone for certain.
   *
   * A process that has lost its parents, left the group and cleared its environment before anybody looked belongs to
   * nobody; it lives until the container stops.
   */
  kill(id: string, tree: Tree): Promise<void>;
}

export interface ContainerControl {
  isLive(id: string): Promise<boolean>;
  /** Does the work while the container runs; one that was paused is paused again. */
  thawed(id: string, work: () => Promise<void>): Promise<void>;
  stop(id: string): Promise<void>;
}

export function createTreeKiller(context: GvisorContext, container: ContainerControl): TreeKiller {
  /** Runs one of our own programs inside. */
  const runInside = async (id: string, argv: readonly string[], deadlineMs: number): Promise<CommandResult> => {
    const processPath = join(containerLayout(context.layout, id).execDirectory, `${randomToken(16)}.json`);
    await writeFile(processPath, JSON.stringify(createProcessSpec({ argv, env: {}, cwd: "/" })), { mode: 0o600 });
    try {
      return await context.runner.run(runsc(context, ["exec", `--process=${processPath}`, id], deadlineMs));
    } finally {
      await rm(processPath, { force: true });
    }
  };

  const sweep = async (id: string, argv: readonly string[]): Promise<"gone" | "unknown"> => {
    for (let attempt = 1; attempt <= SWEEP_ATTEMPTS; attempt += 1) {
      if (!(await container.isLive(id))) return "gone";
      let exitCode = -1;
      const attemptOnce = async (): Promise<void> => {
        exitCode = (await runInside(id, argv, SWEEP_DEADLINE_MS)).exitCode;
      };
      await container.thawed(id, attemptOnce).catch(() => undefined);
      if (exitCode === 0) return "gone";
    }
    return "unknown";
  };

  return {
    terminate: async (id, tree) => {
      let known = "";
      await container.thawed(id, async () => {
        known = (await runInside(id, terminateArgv(tree), TERMINATE_DEADLINE_MS)).stdout;
      });
      return known;
    },
    kill: async (id, tree) => {
      if ((await sweep(id, sweepArgv(tree))) === "unknown") await container.stop(id);
    },
  };
}
