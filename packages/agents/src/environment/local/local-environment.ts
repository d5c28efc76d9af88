import { mkdtemp, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Clock, SandboxError } from "@turnbox/client";
import {
  type CommandRunner,
  createChildCommandRunner,
  invalidArgument,
  parseSessionId,
  systemClock,
} from "@turnbox/client/internal";
import { notSupported } from "../environment-error.ts";
import type { EnvironmentCapabilities, EnvironmentConfig, ExecutionEnvironment } from "../execution-environment.ts";
import { createSessionLife, STATE_OF_PHASE } from "../session/session-life.ts";
import { createToolGate } from "../session/tool-gate.ts";
import { runTool, type ToolSet } from "../tool/tool-set.ts";
import { runLocalBash } from "./bash-tool.ts";
import { fileTools } from "./file-tools.ts";
import { findTools } from "./find-tools.ts";
import type { LocalTarget } from "./local-target.ts";

const DEFAULT_DRAIN_TIMEOUT_MS = 30_000;

const LOCAL_TOOLS: ToolSet<LocalTarget> = { bash: runLocalBash, ...fileTools, ...findTools };

const CAPABILITIES: EnvironmentCapabilities = {
  snapshots: false,
  rollback: false,
  pause: true,
  lifecycle: true,
  streamingProgress: true,
  tierRouting: false,
  isolation: "none",
  maxDurationMs: undefined,
};

/** What a local environment is made with. */
export interface LocalEnvironmentOptions {
  /** Where the tools work; never removed. Without it `create` makes one of its own and `destroy` removes it. */
  readonly directory?: string;
  /** Where directories of its own are made; the system's target for temporary ones unless given. */
  readonly temporaryDirectory?: string;
  /** The environment of commands on top of the built-in one; nothing of this process's own is passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** How long `pause` waits for running tools. */
  readonly drainTimeoutMs?: number;
  readonly runner?: CommandRunner;
  readonly clock?: Clock;
}

/**
 * Tools that run on this machine, as this user. THERE IS NO ISOLATION: commands can read, change and send whatever this
 * process can. File tools keep to the directory; commands need not. For trusted code and for tests; everything else
 * belongs into a sandbox. `pause` only keeps tools out: nothing is frozen.
 */
export function createLocalEnvironment({
  directory,
  temporaryDirectory = tmpdir(),
  env = {},
  drainTimeoutMs = DEFAULT_DRAIN_TIMEOUT_MS,
  runner = createChildCommandRunner(),
  clock = systemClock,
}: LocalEnvironmentOptions = {}): ExecutionEnvironment {
  const life = createSessionLife();
  const gate = createToolGate({ clock, drainTimeoutMs });
  let target: LocalTarget | undefined;

  const make = async ({ sessionId, baseImage, options = {} }: EnvironmentConfig): Promise<void> => {
    parseSessionId(sessionId);
    if (baseImage !== undefined && baseImage !== "")
      throw notSupported("baseImage", "a local environment works on a directory of this machine, not on an image");
    for (const name of Object.keys(options))
      throw invalidArgument(`options.${name}`, "is not known to a local environment");
    const root = await realpath(directory ?? (await mkdtemp(join(temporaryDirectory, "turnbox-local-"))));
    if (!(await stat(root)).isDirectory()) throw invalidArgument("directory", `${root} is not a directory`);
    target = { root, runner, env: { HOME: root, PWD: root, LANG: "C.UTF-8", TERM: "dumb", ...env } };
  };

  const madeTarget = (): LocalTarget => {
    if (target === undefined) throw new SandboxError("INTERNAL", "a live session always has a target");
    return target;
  };

  return {
    create: async (config, call) => {
      await life.create(() => make(config), call);
    },
    pause: async (call) => {
      await life.inTurn("pause", (signal) => gate.close({ signal }), call);
    },
    resume: async (call) => {
      await life.inTurn("resume", async () => gate.open(), call);
    },
    destroy: async (call) => {
      await life.destroy(async () => {
        await gate.settled();
        if (directory === undefined && target !== undefined) await rm(target.root, { recursive: true, force: true });
      }, call);
    },
    executeTool: async (request, onProgress = () => undefined, call) =>
      await life.run(
        "a tool call",
        (signal) =>
          gate.pass(() => {
            const { timeoutMs } = request;
            return runTool(LOCAL_TOOLS, madeTarget(), { request, clock, call: { signal, timeoutMs, onProgress } });
          }),
        call,
      ),
    state: async () => (life.phase === "live" && gate.state === "closed" ? "paused" : STATE_OF_PHASE[life.phase]),
    capabilities: () => CAPABILITIES,
    createSnapshot: async () => {
      throw notSupported("snapshots", "a directory of this machine has none");
    },
    rollback: async () => {
      throw notSupported("rollback", "a directory of this machine has no snapshots");
    },
  };
}
