import { type Clock, type CommandRunner, invalidArgument, KeyedMutex, systemClock } from "@turnbox/core";
import { type Helper } from "../../system/helper/helper.ts";
import { FifoSupply } from "../../system/fifo/fifo-supply.ts";
import { createLingeringOutputs } from "../execution/lingering-outputs.ts";
import { endWaiterInput, tendOutput } from "../execution/waiter.ts";
import type {
  ContainerLimits,
  ContainerSpec,
  ContainerStats,
  ExecSpec,
  Execution,
  Liveness,
  Prewarm,
  ProcessLife,
  Runtime,
  RuntimeCall,
  SignalSpec,
  SpawnedProcess,
  SpawnSpec,
  TerminalExecution,
  TerminalSize,
} from "../runtime.ts";
import { removeContainer } from "./container/boot.ts";
import { ContainerLife } from "./container/container-life.ts";
import { createDeaths, isDead } from "./container/death-causes.ts";
import { createLayout } from "./container/layout.ts";
import { readLiveness } from "./container/liveness.ts";
import { boundAllSandboxes } from "./container/parent-cgroup.ts";
import { countProcesses, readStats } from "./container/stats.ts";
import { cgroupOf, type GvisorContext, liveState, type PrepareRoot } from "./context.ts";
import { Executions } from "./exec/executions.ts";
import { quiesceContainer } from "./exec/quiesce.ts";
import { signalProcess } from "./exec/signal-process.ts";
import { inspectProcess, spawnProcess } from "./exec/spawn.ts";
import { recordProcess, type StartedProcess, startProcess } from "./exec/start-process.ts";
import { openTerminal } from "./exec/terminal.ts";
import { TreeKiller } from "./exec/tree-killer.ts";
import { openCgroupFreezer } from "./idle/cgroup-freezer.ts";
import type { IdleFreezer } from "./idle/idle-freezer.ts";
import { createIdleFreezingRuntime } from "./idle/idle-freezing-runtime.ts";
import { createIdleFreezer } from "./idle/idle-policy.ts";
import { listContainers, removeLeftovers, removeLeftSpares } from "./leftovers.ts";
import { PreparedBoots } from "./prewarm/prepared-boots.ts";
import { checkCgroups, checkRoot, installInit, proveByRun, readVersion } from "./probe.ts";
import { SharedLimits } from "./exec/shared-limits.ts";
import { ShellSlots } from "./shells/shell-slots.ts";

const SLOT_START_MS = 10_000;
const WAITING_SHELLS = 1;
const MAX_LINGERING_OUTPUTS = 128;
/** Bounds what a container without limits of its own can do to the machine's process table. */
const DEFAULT_LIMITS: ContainerLimits = { pids: 4096 };
const MAX_SPAWNED = 64;
const ID_RULE = /^[a-z0-9]{1,64}$/;

export interface GvisorRuntimeOptions {
  readonly runner: CommandRunner;
  readonly prepareRoot: PrepareRoot;
  /** If given, and this version of runsc is one whose protocol is known, processes are started without runsc. */
  readonly helper?: Helper;
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
  /** Whether there is a spare for the next container that a caller waits for. None unless given. */
  readonly spareSandbox?: "one" | "none";
  /** After how long a container is frozen that is not used and in which nothing runs. Never unless given. */
  readonly freezeIdleAfterMs?: number;
}

/** Runs containers by plain `runsc`, one sentry each. Calls of a shell go to one that waits for them if there is one. */
export function createGvisorRuntime(options: GvisorRuntimeOptions): Runtime {
  const context = createContext(options);
  const runtime = new GvisorRuntime(context, options);
  if (runtime.idle === undefined) return runtime;
  return createIdleFreezingRuntime(runtime, {
    idle: runtime.idle,
    liveness: async (id) => {
      const state = await liveState(context, id);
      if (state === undefined) return "gone";
      return state.status === "paused" ? "paused" : "running";
    },
  });
}

function createContext(options: GvisorRuntimeOptions): GvisorContext {
  return {
    runner: options.runner,
    prepareRoot: options.prepareRoot,
    helper: options.helper,
    fifos: new FifoSupply(options.helper === undefined ? {} : { helper: options.helper }),
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
    freezer: options.freezeIdleAfterMs === undefined ? undefined : openCgroupFreezer(),
  };
}

class GvisorRuntime implements Runtime {
  readonly kind = "gvisor";
  readonly isolation = "sandboxed";
  readonly pausePreservesProcesses = "yes";
  readonly prewarm: Prewarm;
  /** Absent when idle containers stay awake. */
  readonly idle: IdleFreezer | undefined;
  readonly #context: GvisorContext;
  readonly #options: GvisorRuntimeOptions;
  readonly #lock = new KeyedMutex();
  readonly #boots: PreparedBoots;
  readonly #life: ContainerLife;
  readonly #treeKiller: TreeKiller;
  readonly #executions: Executions;
  readonly #shells: ShellSlots;
  readonly #limits = new SharedLimits();
  /** Containers whose next start has a caller that waits for it. */
  readonly #hurried = new Set<string>();

  constructor(context: GvisorContext, options: GvisorRuntimeOptions) {
    this.#context = context;
    this.#options = options;
    this.#boots = new PreparedBoots(context);
    this.#life = new ContainerLife(context, {
      lock: this.#lock,
      onStopping: (id) => {
        this.#executions.noteStop(id);
      },
      onStopped: async (id) => {
        await this.#shells.close(id);
        this.#shells.open(id);
        this.#limits.noteOther(id);
      },
    });
    this.#treeKiller = new TreeKiller(context, this.#life);
    this.#shells = this.#createShells();
    this.#executions = new Executions(context, {
      start: async (id, spec, signal) =>
        (await this.#shells.take(id, spec, signal)) ?? (await this.#start(id, spec, signal)),
      treeKiller: this.#treeKiller,
      limits: this.#limits,
    });
    this.idle = this.#createIdleFreezer();
    this.prewarm = {
      hurry: (id) => void this.#hurried.add(id),
      anticipate: async (id, spec) => {
        checkId(id);
        await this.#shells.refill(id, spec);
      },
      expectNone: (id) => {
        this.#shells.expectNone(id);
      },
    };
  }

  async open({ signal }: RuntimeCall): Promise<{ readonly version: string }> {
    const context = this.#context;
    const { totalMemoryBytes, busyboxPath, spareSandbox } = this.#options;
    const version = await readVersion(context, signal);
    checkRoot();
    await checkCgroups();
    if (totalMemoryBytes !== undefined) await boundAllSandboxes(context.cgroupParent, totalMemoryBytes);
    await installInit(context, busyboxPath ?? "/bin/busybox");
    await removeLeftovers(context, this.#lock, signal);
    await removeLeftSpares(context, signal);
    await proveByRun(context, {
      version,
      signal,
      lock: this.#lock,
      runProgram: (id, spec) => this.#executions.exec(id, spec, signal),
    });
    if (spareSandbox === "one") await this.#boots.open(signal);
    return { version };
  }

  async close({ signal }: RuntimeCall): Promise<void> {
    this.#shells.release();
    await this.#context.fifos[Symbol.asyncDispose]();
    await this.#boots.close();
    await removeLeftSpares(this.#context, signal);
  }

  async start(spec: ContainerSpec, { signal }: RuntimeCall): Promise<void> {
    const { id } = spec;
    const isHurried = this.#hurried.delete(id);
    checkId(id);
    await this.#lock.run(id, async () => {
      signal.throwIfAborted();
      if ((await readLiveness(this.#context, id, signal)) !== "gone") return;
      await removeContainer(this.#context, id);
      this.#context.deaths.causes.delete(id);
      await (isHurried ? this.#boots.bootAwaited(spec, signal) : this.#boots.boot(spec, signal));
      this.#limits.noteBoot(id);
    });
  }

  async limit(id: string, limits: ContainerLimits): Promise<void> {
    checkId(id);
    const cgroup = await cgroupOf(this.#context, id);
    await cgroup.limit({ ...this.#context.defaultLimits, ...limits });
  }

  async exec(id: string, spec: ExecSpec, { signal }: RuntimeCall): Promise<Execution> {
    checkId(id);
    return await this.#executions.exec(id, spec, signal);
  }

  async spawn(id: string, spec: SpawnSpec, { signal }: RuntimeCall): Promise<{ readonly pid: number }> {
    checkId(id);
    const onAbandoned = async (marker: string): Promise<void> => {
      await this.#treeKiller.kill(id, { marker });
    };
    this.#limits.noteOther(id);
    return await spawnProcess(this.#context, id, { spec, signal, onAbandoned });
  }

  async tend({ directory }: SpawnedProcess, { signal }: RuntimeCall): Promise<void> {
    await tendOutput({ ...this.#context, signal }, directory);
  }

  async inspect(id: string, process: SpawnedProcess, { signal }: RuntimeCall): Promise<ProcessLife> {
    checkId(id);
    return await inspectProcess(this.#context, id, { process, signal });
  }

  async signal(id: string, process: SpawnedProcess, spec: SignalSpec, { signal }: RuntimeCall): Promise<void> {
    checkId(id);
    await signalProcess(this.#context, id, {
      process,
      spec,
      treeKiller: this.#treeKiller,
      container: this.#life,
      signal,
    });
  }

  async endInput(_id: string, { directory }: SpawnedProcess): Promise<void> {
    await endWaiterInput(directory);
  }

  async openTerminal(
    id: string,
    spec: ExecSpec,
    size: TerminalSize,
    { signal }: RuntimeCall,
  ): Promise<TerminalExecution> {
    checkId(id);
    this.#limits.noteOther(id);
    return await openTerminal(this.#context, id, { spec, size, treeKiller: this.#treeKiller, signal });
  }

  async quiesce(id: string, { signal }: RuntimeCall): Promise<void> {
    checkId(id);
    await quiesceContainer(this.#context, id, { treeKiller: this.#treeKiller, signal });
  }

  async liveness(id: string, { signal }: RuntimeCall): Promise<Liveness> {
    return await readLiveness(this.#context, id, signal);
  }

  async findDead(ids: readonly string[], { signal }: RuntimeCall): Promise<readonly string[]> {
    const dead: string[] = [];
    for (const id of ids) {
      signal.throwIfAborted();
      if (await isDead(this.#context, id)) dead.push(id);
    }
    return dead;
  }

  async processes(id: string, { signal }: RuntimeCall): Promise<number> {
    checkId(id);
    return await countProcesses(this.#context, id, { slots: this.#shells, signal });
  }

  async stats(id: string, { signal }: RuntimeCall): Promise<ContainerStats> {
    checkId(id);
    return await readStats(this.#context, id, { slots: this.#shells, signal });
  }

  async pause(id: string, { signal }: RuntimeCall): Promise<void> {
    // A shell that waits could not end with the service while it is frozen.
    checkId(id);
    await this.#shells.close(id);
    await this.#life.bringTo(id, "paused", signal);
  }

  async resume(id: string, { signal }: RuntimeCall): Promise<void> {
    checkId(id);
    await this.#life.bringTo(id, "running", signal);
    this.#shells.open(id);
  }

  async stop(id: string, { signal }: RuntimeCall): Promise<void> {
    checkId(id);
    await this.#life.stop(id, signal);
  }

  async list({ signal }: RuntimeCall): Promise<readonly string[]> {
    signal.throwIfAborted();
    return await listContainers(this.#context);
  }

  /** Starts a process for one execution; what a start that was given up has left is ended. */
  async #start(id: string, spec: ExecSpec, signal: AbortSignal): Promise<StartedProcess> {
    const onAbandoned = async (marker: string): Promise<void> => {
      await this.#treeKiller.kill(id, { marker });
    };
    return await startProcess(this.#context, id, { spec, signal, onAbandoned });
  }

  #createShells(): ShellSlots {
    const context = this.#context;
    return new ShellSlots({
      start: (id, spec) => this.#start(id, spec, AbortSignal.timeout(SLOT_START_MS)),
      abandon: async (id, { marker, pid }) => {
        await this.#treeKiller.kill(id, { marker, pid });
      },
      record: (id, process, work) => {
        recordProcess(context, id, { process, work });
      },
      isRunning: async (id) => (await liveState(context, id))?.status === "running",
      awake: async (id, work) => {
        using _held = await this.idle?.look(id);
        await work();
      },
      calm: () => this.#boots.calm(),
      limits: this.#limits,
      clock: context.clock,
      perContainer: this.#options.waitingShells ?? WAITING_SHELLS,
    });
  }

  #createIdleFreezer(): IdleFreezer | undefined {
    const { freezer } = this.#context;
    if (freezer === undefined) return undefined;
    return createIdleFreezer(this.#context, {
      freezer,
      afterMs: this.#options.freezeIdleAfterMs ?? Number.POSITIVE_INFINITY,
      countProcesses: (id, signal) => countProcesses(this.#context, id, { slots: this.#shells, signal }),
    });
  }
}

function checkId(id: string): void {
  if (!ID_RULE.test(id)) throw invalidArgument("id", "must be lower-case letters and digits");
}
