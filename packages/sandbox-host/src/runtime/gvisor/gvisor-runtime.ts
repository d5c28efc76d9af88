import {
  type Aide,
  type Clock,
  type CommandRunner,
  createFifoSupply,
  hasReason,
  invalidArgument,
  randomToken,
  SandboxError,
  systemClock,
} from "@turnbox/core";
import { KeyedMutex } from "../../async/keyed-mutex.ts";
import { createLingeringOutputs } from "../execution/lingering-outputs.ts";
import { superviseExecution } from "../execution/supervise-execution.ts";
import { endWaiterInput, tendOutput } from "../execution/waiter.ts";
import { withinStopLimit } from "../execution/within-stop-limit.ts";
import type { ContainerLimits, ContainerSpec, ExecSpec, Execution, Runtime } from "../runtime.ts";
import { createBootLoad } from "./boot-load.ts";
import { bootContainer, removeContainer } from "./boot.ts";
import { cgroupOf, type GvisorContext, liveState, type PrepareRoot, runsc } from "./context.ts";
import { createDeaths, isDead, noteDeath } from "./deaths.ts";
import { checkSpec, recordProcess, type StartedProcess, startProcess } from "./exec.ts";
import { createLayout } from "./layout.ts";
import { listContainers, removeLeftovers, removeLeftSpares } from "./leftovers.ts";
import { judgeExit, readLiveness } from "./liveness.ts";
import { boundAllSandboxes } from "./parent-cgroup.ts";
import { checkCgroups, checkRoot, installInit, proveByRun, readVersion } from "./probe.ts";
import { quiesceContainer } from "./quiesce.ts";
import { createContainerRest } from "./rest/container-rest.ts";
import { openFreezer } from "./rest/freezer.ts";
import { createRestingRuntime } from "./rest/resting-runtime.ts";
import { createShellSlots } from "./shell-slots.ts";
import { signalProcess } from "./signal-process.ts";
import { bootSpare, makeSpareImage, removeSpare, restSpare, wakeSpare } from "./spare/spare-sandbox.ts";
import { createSpares, type Spares } from "./spare/spares.ts";
import { inspectProcess, spawnProcess } from "./spawn.ts";
import { countProcesses, readStats } from "./stats.ts";
import { openTerminal } from "./terminal.ts";
import { createTreeKiller } from "./tree-killer.ts";

const CONTROL_DEADLINE_MS = 10_000;
const SLOT_START_MS = 10_000;
const WAITING_SHELLS = 1;
const MAX_LINGERING_OUTPUTS = 128;
/** As long as the ids of containers: runsc matches ids by prefix. */
const SPARE_ID_CHARS = 16;
/** Bounds what a container without limits of its own can do to the machine's process table. */
const DEFAULT_LIMITS: ContainerLimits = { pids: 4096 };
const MAX_SPAWNED = 64;
const ID_RULE = /^[a-z0-9]{1,64}$/;

export interface GvisorRuntimeOptions {
  readonly runner: CommandRunner;
  readonly prepareRoot: PrepareRoot;
  /** Where given, and this version of runsc is one whose protocol is known, processes are started without runsc. */
  readonly aide?: Aide;
  /** Private to this runtime; what is in it outlives the service. */
  readonly stateDirectory: string;
  readonly clock?: Clock;
  /** A name looked up in the runner's PATH, or a path. */
  readonly runscPath?: string;
  /** A static busybox of the host. */
  readonly busyboxPath?: string;
  /** The cgroup, below the root of every hierarchy, that holds one group per container. */
  readonly cgroupParent?: string;
  readonly defaultLimits?: ContainerLimits;
  /** What all sandboxes together may use. No bound unless given. */
  readonly totalMemoryBytes?: number;
  /** How many spawned processes of a container run at once at most: by it what waits for them on the host is bounded. */
  readonly maxSpawned?: number;
  /** How many shells wait for calls in a container that is in use; 0 starts a new one for each call. */
  readonly waitingShells?: number;
  /** Whether a sandbox stands by for the next container that somebody waits for. None unless given. */
  readonly spareSandbox?: "one" | "none";
  /** After how long a container rests that nobody uses and nothing runs in. Never unless given. */
  readonly restAfterMs?: number;
}

/** Runs containers by plain `runsc`, one sentry each. Calls of a shell go to one that waits for them where there is one. */
export function createGvisorRuntime(options: GvisorRuntimeOptions): Runtime {
  const context: GvisorContext = {
    runner: options.runner,
    prepareRoot: options.prepareRoot,
    aide: options.aide,
    fifos: createFifoSupply(options.aide === undefined ? {} : { aide: options.aide }),
    execs: { way: "runsc" },
    clock: options.clock ?? systemClock,
    layout: createLayout(options.stateDirectory),
    runscPath: options.runscPath ?? "runsc",
    cgroupParent: options.cgroupParent ?? "/turnbox",
    defaultLimits: { ...DEFAULT_LIMITS, ...options.defaultLimits },
    maxSpawned: options.maxSpawned ?? MAX_SPAWNED,
    lingering: createLingeringOutputs(MAX_LINGERING_OUTPUTS),
    ownExecs: new Set(),
    deaths: createDeaths(),
    sandboxes: new Map(),
    freezer: options.restAfterMs === undefined ? undefined : openFreezer(),
  };
  const bootLoad = createBootLoad(context.clock);
  let spares: Spares | undefined;
  const lock = new KeyedMutex();
  /** Executions that run, so that those of a container that is stopped on request are told as killed, not as lost. */
  const running = new Set<{ readonly id: string; end: "own" | "stopped" }>();

  const control = async (id: string, subcommand: "pause" | "resume", signal: AbortSignal): Promise<void> => {
    const command = runsc(context, [subcommand, id], CONTROL_DEADLINE_MS);
    const { exitCode, stderr } = await context.runner.run(command, { signal });
    if (exitCode === 0) return;
    if ((await liveState(context, id)) === undefined) throw lost(id);
    const cause = new Error(stderr.trim());
    throw new SandboxError("RUNTIME_UNAVAILABLE", `container ${id} did not ${subcommand}`, { cause });
  };

  /** Brings a live container into a status, or leaves it there. */
  const bringTo = async (id: string, status: "running" | "paused", signal: AbortSignal): Promise<void> => {
    checkId(id);
    await lock.run(id, async () => {
      const state = await liveState(context, id);
      if (state === undefined) throw lost(id);
      if (state.status !== status) await control(id, status === "paused" ? "pause" : "resume", signal);
    });
  };

  const stop = async (id: string, signal?: AbortSignal): Promise<void> => {
    checkId(id);
    await withinStopLimit(id, signal, async (limit) => {
      const end = async (): Promise<void> => {
        const found = await noteDeath(context, id);
        for (const execution of running) if (execution.id === id && found === "alive") execution.end = "stopped";
        await removeContainer(context, id, limit);
        await slots.close(id);
        slots.open(id);
      };
      await lock.run(id, end, limit);
    });
  };

  const treeKiller = createTreeKiller(context, {
    stop,
    isLive: async (id) => (await liveState(context, id)) !== undefined,
    thawed: async (id, work) => {
      if ((await liveState(context, id))?.status !== "paused") {
        await work();
        return;
      }
      await lock.run(id, async () => {
        try {
          await control(id, "resume", AbortSignal.timeout(CONTROL_DEADLINE_MS));
          await work();
        } finally {
          const status = (await liveState(context, id))?.status;
          if (status === "running") await control(id, "pause", AbortSignal.timeout(CONTROL_DEADLINE_MS));
        }
      });
    },
  });

  const start = async (id: string, spec: ExecSpec, signal: AbortSignal): Promise<StartedProcess> =>
    await startProcess(context, id, {
      spec,
      signal,
      onAbandoned: async (abandoned) => {
        await treeKiller.kill(id, { marker: abandoned });
      },
    });
  const slots = createShellSlots({
    start: (id, spec) => start(id, spec, AbortSignal.timeout(SLOT_START_MS)),
    abandon: async (id, { marker, pid }) => {
      await treeKiller.kill(id, { marker, pid });
    },
    record: (id, process, work) => {
      recordProcess(context, id, { process, work });
    },
    isRunning: async (id) => (await liveState(context, id))?.status === "running",
    awake: async (id, work) => {
      using _held = await rest?.look(id);
      await work();
    },
    calm: () => bootLoad.calm(),
    clock: context.clock,
    perContainer: options.waitingShells ?? WAITING_SHELLS,
  });

  const { freezer } = context;
  const rest =
    freezer === undefined
      ? undefined
      : createContainerRest(context, {
          freezer,
          afterMs: options.restAfterMs ?? Number.POSITIVE_INFINITY,
          countProcesses: (id, signal) => countProcesses(context, id, { slots, signal }),
        });

  const openSpares = (): Spares =>
    createSpares({
      newId: () => randomToken(SPARE_ID_CHARS),
      boot: async (id, { hostname, limits }, signal) => {
        await bootSpare(context, id, { shape: { hostname, limits: { ...context.defaultLimits, ...limits } }, signal });
      },
      rest: (id, isReady) => restSpare(context, id, isReady),
      remove: (id) => removeSpare(context, id, AbortSignal.timeout(CONTROL_DEADLINE_MS)),
      calm: (call) => bootLoad.calm(call),
      clock: context.clock,
    });
  /** Whether the container runs in a sandbox that stood by; where not, nothing of either is left. */
  const bootedIn = async (sandboxId: string, spec: ContainerSpec, signal: AbortSignal): Promise<boolean> => {
    try {
      wakeSpare(context, sandboxId);
      await bootContainer(context, spec, { signal, sandboxId });
      return true;
    } catch (thrown) {
      await removeSpare(context, sandboxId, AbortSignal.timeout(CONTROL_DEADLINE_MS));
      signal.throwIfAborted();
      if (!hasReason(thrown, "RUNTIME_UNAVAILABLE")) throw thrown;
      return false;
    }
  };

  const exec = async (id: string, spec: ExecSpec, signal: AbortSignal): Promise<Execution> => {
    checkId(id);
    checkSpec(spec);
    const process = (await slots.take(id, spec, signal)) ?? (await start(id, spec, signal));
    const { command, stdout, stderr, marker, pid, release } = process;
    const record: { readonly id: string; end: "own" | "stopped" } = { id, end: "own" };
    running.add(record);
    let known = "";
    const execution = superviseExecution({
      command,
      stdout,
      stderr,
      deadlineMs: spec.deadlineMs,
      clock: context.clock,
      terminate: async () => {
        known = await treeKiller.terminate(id, { marker, pid });
      },
      killTree: async (main) => {
        await treeKiller.kill(id, main === "running" ? { marker, pid, known } : { marker, known });
      },
      judge: async (exit) => {
        running.delete(record);
        if (record.end === "stopped") return { kind: "killed" };
        const verdict = await judgeExit(context, id, exit);
        // Somebody killed the host-side command, which the process inside does not notice by itself.
        if (verdict.kind === "killed") await treeKiller.kill(id, { marker, pid }).catch(() => undefined);
        return verdict;
      },
    });
    const exit = execution.exit.finally(() => {
      running.delete(record);
      release();
    });
    return { ...execution, exit };
  };

  const runtime: Runtime = {
    kind: "gvisor",
    isolation: "sandboxed",
    pausePreservesProcesses: "yes",
    open: async ({ signal }) => {
      const version = await readVersion(context, signal);
      checkRoot();
      await checkCgroups();
      if (options.totalMemoryBytes !== undefined)
        await boundAllSandboxes(context.cgroupParent, options.totalMemoryBytes);
      await installInit(context, options.busyboxPath ?? "/bin/busybox");
      await removeLeftovers(context, lock, signal);
      await removeLeftSpares(context, signal);
      await proveByRun(context, { version, signal, lock, runProgram: (id, spec) => exec(id, spec, signal) });
      if (options.spareSandbox === "one" && (await makeSpareImage(context, signal))) spares ??= openSpares();
      return { version };
    },
    close: async ({ signal }) => {
      slots.release();
      await context.fifos[Symbol.asyncDispose]();
      await spares?.close();
      spares = undefined;
      await removeLeftSpares(context, signal);
    },
    start: async (spec, { signal }) => {
      checkId(spec.id);
      await lock.run(spec.id, async () => {
        signal.throwIfAborted();
        if ((await readLiveness(context, spec.id, signal)) !== "gone") return;
        await removeContainer(context, spec.id);
        context.deaths.causes.delete(spec.id);
        if (spec.awaited !== "yes") {
          await bootContainer(context, spec, { signal });
          return;
        }
        await bootLoad.run(async () => {
          const sandboxId = spares?.take(spec);
          if (sandboxId === undefined || !(await bootedIn(sandboxId, spec, signal)))
            await bootContainer(context, spec, { signal });
        });
        spares?.expect(spec);
      });
    },
    limit: async (id, limits) => {
      checkId(id);
      const cgroup = await cgroupOf(context, id);
      await cgroup.limit({ ...context.defaultLimits, ...limits });
    },
    anticipate: async (id, spec) => {
      checkId(id);
      await slots.refill(id, spec);
    },
    expectNone: (id) => {
      slots.expectNone(id);
    },
    exec: async (id, spec, { signal }) => await exec(id, spec, signal),
    spawn: async (id, spec, { signal }) => {
      checkId(id);
      const onAbandoned = async (marker: string): Promise<void> => {
        await treeKiller.kill(id, { marker });
      };
      return await spawnProcess(context, id, { spec, signal, onAbandoned });
    },
    tend: async ({ directory }, { signal }) => {
      await tendOutput({ ...context, signal }, directory);
    },
    inspect: async (id, process, { signal }) => {
      checkId(id);
      return await inspectProcess(context, id, { process, signal });
    },
    signal: async (id, process, spec, { signal }) => {
      checkId(id);
      await signalProcess(context, id, { process, spec, treeKiller, signal });
    },
    endInput: async (_id, { directory }) => {
      await endWaiterInput(directory);
    },
    openTerminal: async (id, spec, size, { signal }) => {
      checkId(id);
      return await openTerminal(context, id, { spec, size, treeKiller, signal });
    },
    quiesce: async (id, { signal }) => {
      checkId(id);
      await quiesceContainer(context, id, { treeKiller, signal });
    },
    liveness: async (id, { signal }) => await readLiveness(context, id, signal),
    findDead: async (ids, { signal }) => {
      const dead: string[] = [];
      for (const id of ids) {
        signal.throwIfAborted();
        if (await isDead(context, id)) dead.push(id);
      }
      return dead;
    },
    processes: async (id, { signal }) => {
      checkId(id);
      return await countProcesses(context, id, { slots, signal });
    },
    stats: async (id, { signal }) => {
      checkId(id);
      return await readStats(context, id, { slots, signal });
    },
    pause: async (id, { signal }) => {
      // A shell that waits could not end with the service while it is frozen.
      await slots.close(id);
      await bringTo(id, "paused", signal);
    },
    resume: async (id, { signal }) => {
      await bringTo(id, "running", signal);
      slots.open(id);
    },
    stop: async (id, { signal }) => {
      await stop(id, signal);
    },
    list: async ({ signal }) => {
      signal.throwIfAborted();
      return await listContainers(context);
    },
  };
  if (rest === undefined) return runtime;
  return createRestingRuntime(runtime, {
    rest,
    liveness: async (id) => {
      const state = await liveState(context, id);
      if (state === undefined) return "gone";
      return state.status === "paused" ? "paused" : "running";
    },
  });
}

function lost(id: string): SandboxError {
  return new SandboxError("SANDBOX_LOST", `container ${id} does not run`, { admitted: "no" });
}

function checkId(id: string): void {
  if (!ID_RULE.test(id)) throw invalidArgument("id", "must be lower-case letters and digits");
}
