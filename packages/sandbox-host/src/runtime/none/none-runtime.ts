import { readFile, stat } from "node:fs/promises";
import { constants, release } from "node:os";
import { join } from "node:path";
import {
  type Clock,
  type CommandExit,
  type CommandRunner,
  hasReason,
  identifyProcess,
  invalidArgument,
  isLiving,
  KeyedMutex,
  randomToken,
  type RunningCommand,
  SandboxError,
  systemClock,
} from "@turnbox/core";
import { createLingeringOutputs } from "../execution/lingering-outputs.ts";
import { relayOutput } from "../execution/relay-output.ts";
import { superviseExecution } from "../execution/supervise-execution.ts";
import { endWaiterInput } from "../execution/waiter.ts";
import { withinStopLimit } from "../execution/within-stop-limit.ts";
import { readProcessUsage } from "../process-usage.ts";
import type {
  ContainerSpec,
  ContainerStats,
  ExecExit,
  ExecSpec,
  Execution,
  Liveness,
  ProcessLife,
  Runtime,
  RuntimeCall,
  SignalSpec,
  SpawnedProcess,
  SpawnSpec,
  TerminalExecution,
  TerminalSize,
} from "../runtime.ts";
import { type ContainerRecord, type ContainerRecords, createContainerRecords } from "./container-record.ts";
import { createExecRecords, type ExecRecords } from "./exec-record.ts";
import { createHostTree, type HostTree, type Marker } from "./host-tree.ts";
import { inspectOnHost, signalOnHost, spawnOnHost } from "./none-spawn.ts";
import { openTerminalOnHost } from "./none-terminal.ts";

const MAX_LINGERING_OUTPUTS = 128;
const MARKER_CHARS = 26;

export interface NoneRuntimeOptions {
  readonly runner: CommandRunner;
  readonly stateDirectory: string;
  readonly clock?: Clock;
}

/**
 * Runs processes on the host itself, as the user of the service, with **no isolation at all**: they see and reach all that
 * the service can. Only for an explicit choice.
 *
 * A container is a record. The working directory lies below its root; every other path is the host's, and so are the
 * programs. Limits are not enforced. A process without a PATH of its own gets the runner's.
 */
export function createNoneRuntime(options: NoneRuntimeOptions): Runtime {
  return new NoneRuntime(options);
}

class NoneRuntime implements Runtime {
  readonly kind = "none";
  readonly isolation = "none";
  readonly pausePreservesProcesses = "yes";
  readonly #runner: CommandRunner;
  readonly #clock: Clock;
  readonly #records: ContainerRecords;
  readonly #execs: ExecRecords;
  /** Markers of executions that this instance looks after. */
  readonly #own = new Set<string>();
  /** Nothing starts while the processes of a container are being frozen or ended. */
  readonly #lock = new KeyedMutex();
  readonly #lingering = createLingeringOutputs(MAX_LINGERING_OUTPUTS);
  readonly #running = new Set<{ readonly id: string; end: "own" | "stopped" }>();

  constructor({ runner, stateDirectory, clock }: NoneRuntimeOptions) {
    this.#runner = runner;
    this.#clock = clock ?? systemClock;
    this.#records = createContainerRecords(stateDirectory);
    this.#execs = createExecRecords(join(stateDirectory, "exec"));
  }

  async open({ signal }: RuntimeCall): Promise<{ readonly version: string }> {
    signal.throwIfAborted();
    return await Promise.resolve({ version: `host kernel ${release()}` });
  }

  async close(): Promise<void> {
    await Promise.resolve();
  }

  async start(spec: ContainerSpec, { signal }: RuntimeCall): Promise<void> {
    await this.#lock.run(spec.id, async () => {
      signal.throwIfAborted();
      if ((await this.#readLive(spec.id)) !== undefined) return;
      const root = await stat(spec.rootPath).catch(() => undefined);
      if (root?.isDirectory() !== true) throw invalidArgument("rootPath", "is not a directory");
      const bootId = await readBootId();
      await this.#records.write(spec.id, { rootPath: spec.rootPath, status: "running", bootId });
    });
  }

  /** Nothing is bounded here. */
  async limit(): Promise<void> {
    await Promise.resolve();
  }

  async exec(id: string, spec: ExecSpec, { signal }: RuntimeCall): Promise<Execution> {
    return await this.#lock.run(id, async () => await this.#exec(id, spec, signal));
  }

  async spawn(id: string, spec: SpawnSpec, { signal }: RuntimeCall): Promise<{ readonly pid: number }> {
    return await this.#lock.run(id, async () => {
      signal.throwIfAborted();
      const cwd = await findDirectory((await this.#requireRunning(id)).rootPath, spec.cwd);
      const marks = [containerMarker(id), execMarker(spec.name)] as const;
      return await spawnOnHost({ runner: this.#runner, clock: this.#clock }, { spec, cwd, marks });
    });
  }

  /** No output is guarded here. */
  async tend(): Promise<void> {
    await Promise.resolve();
  }

  async inspect(id: string, process: SpawnedProcess): Promise<ProcessLife> {
    const life = await inspectOnHost(process);
    return life.kind === "unknown" && (await this.#readLive(id)) === undefined ? { kind: "sandbox_lost" } : life;
  }

  async signal(_id: string, process: SpawnedProcess, spec: SignalSpec): Promise<void> {
    await signalOnHost(process, spec, createHostTree(execMarker(process.name), this.#clock));
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
    return await this.#lock.run(id, async () => {
      signal.throwIfAborted();
      const { rootPath } = await this.#requireRunning(id);
      const marker = randomToken(MARKER_CHARS);
      const marks = { ...asVariable(execMarker(marker)), ...asVariable(containerMarker(id)) };
      const cwd = await findDirectory(rootPath, spec.cwd);
      const tree = createHostTree(execMarker(marker), this.#clock);
      const deps = { runner: this.#runner, clock: this.#clock };
      return await openTerminalOnHost(deps, { spec: { ...spec, cwd }, size, marks, tree });
    });
  }

  async quiesce(id: string, { signal }: RuntimeCall): Promise<void> {
    const end = async (): Promise<void> => {
      for (const { marker, leader } of await this.#execs.list(id)) {
        if (this.#own.has(marker)) continue;
        signal.throwIfAborted();
        // One that was only starting has no leader that could be told apart from its children.
        if (leader === "starting") await createHostTree(execMarker(marker), this.#clock).kill(signal);
        else if (leader !== "ended" && isLiving(leader))
          await createHostTree(execMarker(marker), this.#clock, leader).kill(signal);
        await this.#execs.remove(id, marker);
      }
    };
    await this.#lock.run(id, end, signal);
  }

  async liveness(id: string): Promise<Liveness> {
    return (await this.#readLive(id))?.status ?? "gone";
  }

  async findDead(ids: readonly string[]): Promise<readonly string[]> {
    const records = await Promise.all(ids.map(async (id) => ({ id, record: await this.#readLive(id) })));
    return records.filter(({ record }) => record === undefined).map(({ id }) => id);
  }

  async processes(id: string, { signal }: RuntimeCall): Promise<number> {
    signal.throwIfAborted();
    await this.#requireLive(id);
    return (await this.#treeOf(id).look()).length;
  }

  async stats(id: string, { signal }: RuntimeCall): Promise<ContainerStats> {
    signal.throwIfAborted();
    await this.#requireLive(id);
    const processes = await this.#treeOf(id).look();
    return { ...(await readProcessUsage(processes.map(({ pid }) => pid))), processes: processes.length };
  }

  async pause(id: string): Promise<void> {
    await this.#bringTo(id, "paused");
  }

  async resume(id: string): Promise<void> {
    await this.#bringTo(id, "running");
  }

  async stop(id: string, { signal }: RuntimeCall): Promise<void> {
    await withinStopLimit(id, signal, async (limit) => {
      const end = async (): Promise<void> => {
        for (const execution of this.#running) if (execution.id === id) execution.end = "stopped";
        await this.#treeOf(id).kill(limit);
        await this.#execs.removeAll(id);
        await this.#records.remove(id);
      };
      await this.#lock.run(id, end, limit);
    });
  }

  async list(): Promise<readonly string[]> {
    return await this.#records.list();
  }

  async #exec(id: string, spec: ExecSpec, signal: AbortSignal): Promise<Execution> {
    signal.throwIfAborted();
    const { rootPath } = await this.#requireRunning(id);
    const marker = randomToken(MARKER_CHARS);
    const cwd = await findDirectory(rootPath, spec.cwd);
    const release = async (): Promise<void> => {
      await this.#execs.remove(id, marker);
      this.#own.delete(marker);
    };
    this.#own.add(marker);
    await this.#execs.write(id, { marker, leader: "starting" });
    const child = await this.#startChild(id, { spec, cwd, marker, release });
    const leader = identifyProcess(child.pid);
    await this.#execs.write(id, { marker, leader: leader ?? "ended" }).catch(async (thrown: unknown) => {
      child.kill();
      await release();
      throw thrown;
    });
    const tree = createHostTree(execMarker(marker), this.#clock, leader);
    const execution = this.#supervise(id, { child, tree, deadlineMs: spec.deadlineMs });
    const exit = execution.exit.finally(() => release().catch(() => undefined));
    return { ...execution, exit };
  }

  async #startChild(
    id: string,
    {
      spec,
      cwd,
      marker,
      release,
    }: {
      readonly spec: ExecSpec;
      readonly cwd: string;
      readonly marker: string;
      readonly release: () => Promise<void>;
    },
  ) {
    const [command, ...args] = spec.argv;
    const env = { ...spec.env, ...asVariable(execMarker(marker)), ...asVariable(containerMarker(id)) };
    return await this.#runner
      .start({ command, args, env, cwd, deadlineMs: Number.MAX_SAFE_INTEGER, stdio: "fifos" })
      .catch(async (thrown: unknown) => {
        await release();
        throw hasReason(thrown, "COMMAND_MISSING") ? invalidArgument("argv", "there is no such program") : thrown;
      });
  }

  #supervise(
    id: string,
    {
      child,
      tree,
      deadlineMs,
    }: { readonly child: RunningCommand; readonly tree: HostTree; readonly deadlineMs: number },
  ): Execution {
    const clock = this.#clock;
    const relay = { clock, onLinger: this.#lingering.add };
    const record: { readonly id: string; end: "own" | "stopped" } = { id, end: "own" };
    this.#running.add(record);
    return superviseExecution({
      command: child,
      stdout: relayOutput(child.stdout, relay),
      stderr: relayOutput(child.stderr, relay),
      deadlineMs,
      clock,
      terminate: async () => {
        await tree.look();
        child.kill("SIGTERM");
      },
      killTree: async () => {
        await tree.kill();
      },
      judge: (exit) => {
        this.#running.delete(record);
        return Promise.resolve(record.end === "stopped" ? { kind: "killed" } : toExecExit(exit));
      },
    });
  }

  async #bringTo(id: string, status: "running" | "paused"): Promise<void> {
    await this.#lock.run(id, async () => {
      const record = await this.#requireLive(id);
      await this.#records.write(id, { ...record, status });
      await (status === "paused" ? this.#treeOf(id).freeze() : this.#treeOf(id).thaw());
    });
  }

  #treeOf(id: string): HostTree {
    return createHostTree(containerMarker(id), this.#clock);
  }

  async #readLive(id: string): Promise<ContainerRecord | undefined> {
    const record = await this.#records.read(id);
    return record?.bootId === (await readBootId()) ? record : undefined;
  }

  async #requireLive(id: string): Promise<ContainerRecord> {
    const record = await this.#readLive(id);
    if (record === undefined)
      throw new SandboxError("SANDBOX_LOST", `container ${id} does not run`, { admitted: "no" });
    return record;
  }

  async #requireRunning(id: string): Promise<ContainerRecord> {
    const record = await this.#requireLive(id);
    if (record.status === "paused") throw new SandboxError("INVALID_STATE", `container ${id} is paused`);
    return record;
  }
}

function containerMarker(id: string): Marker {
  return `TURNBOX_CONTAINER=${id}`;
}

function execMarker(marker: string): Marker {
  return `TURNBOX_EXEC=${marker}`;
}

function asVariable(marker: Marker): Readonly<Record<string, string>> {
  const [name = "", value = ""] = marker.split("=");
  return { [name]: value };
}

/** Joined as text: the path cannot climb out of the root, but links in it lead wherever they do on the host. */
async function findDirectory(rootPath: string, cwd: string): Promise<string> {
  if (!cwd.startsWith("/")) throw invalidArgument("cwd", "is not an absolute path");
  const path = join(rootPath, join("/", cwd));
  const stats = await stat(path).catch(() => undefined);
  if (stats?.isDirectory() !== true) throw invalidArgument("cwd", "there is no such directory");
  return path;
}

async function readBootId(): Promise<string> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();
}

function toExecExit(exit: CommandExit): ExecExit {
  return exit.kind === "exited" ? exit : { kind: "signaled", signal: constants.signals[exit.signal] };
}
