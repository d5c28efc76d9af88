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
  randomToken,
  SandboxError,
  systemClock,
} from "@turnbox/core";
import { KeyedMutex } from "../../async/keyed-mutex.ts";
import { createLingeringOutputs } from "../execution/lingering-outputs.ts";
import { relayOutput } from "../execution/relay-output.ts";
import { superviseExecution } from "../execution/supervise-execution.ts";
import { endWaiterInput } from "../execution/waiter.ts";
import { withinStopLimit } from "../execution/within-stop-limit.ts";
import { readProcessUsage } from "../process-usage.ts";
import type { ExecExit, ExecSpec, Execution, Runtime } from "../runtime.ts";
import { type ContainerRecord, createContainerRecords } from "./container-record.ts";
import { createExecRecords } from "./exec-record.ts";
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
 * programs. Limits are not enforced. A process without a PATH of its own is given the runner's.
 */
export function createNoneRuntime(options: NoneRuntimeOptions): Runtime {
  const { runner } = options;
  const clock = options.clock ?? systemClock;
  const records = createContainerRecords(options.stateDirectory);
  const execs = createExecRecords(join(options.stateDirectory, "exec"));
  /** Markers of executions that this instance looks after. */
  const own = new Set<string>();
  const lock = new KeyedMutex();
  const lingering = createLingeringOutputs(MAX_LINGERING_OUTPUTS);
  const running = new Set<{ readonly id: string; end: "own" | "stopped" }>();

  const readLive = async (id: string): Promise<ContainerRecord | undefined> => {
    const record = await records.read(id);
    return record?.bootId === (await readBootId()) ? record : undefined;
  };

  const requireLive = async (id: string): Promise<ContainerRecord> => {
    const record = await readLive(id);
    if (record === undefined)
      throw new SandboxError("SANDBOX_LOST", `container ${id} does not run`, { admitted: "no" });
    return record;
  };

  const treeOf = (id: string): HostTree => createHostTree(containerMarker(id), clock);

  const bringTo = async (id: string, status: "running" | "paused"): Promise<void> => {
    await lock.run(id, async () => {
      const record = await requireLive(id);
      await records.write(id, { ...record, status });
      await (status === "paused" ? treeOf(id).freeze() : treeOf(id).thaw());
    });
  };

  const exec = async (id: string, spec: ExecSpec, signal: AbortSignal): Promise<Execution> => {
    signal.throwIfAborted();
    const { rootPath, status } = await requireLive(id);
    if (status === "paused") throw new SandboxError("INVALID_STATE", `container ${id} is paused`);
    const marker = randomToken(MARKER_CHARS);
    const cwd = await findDirectory(rootPath, spec.cwd);
    const [command, ...args] = spec.argv;
    const env = { ...spec.env, ...asVariable(execMarker(marker)), ...asVariable(containerMarker(id)) };
    const release = async (): Promise<void> => {
      await execs.remove(id, marker);
      own.delete(marker);
    };
    own.add(marker);
    await execs.write(id, { marker, leader: "starting" });
    const child = await runner
      .start({ command, args, env, cwd, deadlineMs: Number.MAX_SAFE_INTEGER, stdio: "fifos" })
      .catch(async (thrown: unknown) => {
        await release();
        throw hasReason(thrown, "COMMAND_MISSING") ? invalidArgument("argv", "there is no such program") : thrown;
      });
    const leader = identifyProcess(child.pid);
    await execs.write(id, { marker, leader: leader ?? "ended" }).catch(async (thrown: unknown) => {
      child.kill();
      await release();
      throw thrown;
    });
    const record: { readonly id: string; end: "own" | "stopped" } = { id, end: "own" };
    running.add(record);
    const tree = createHostTree(execMarker(marker), clock, leader);
    const execution = superviseExecution({
      command: child,
      stdout: relayOutput(child.stdout, { clock, onLinger: lingering.add }),
      stderr: relayOutput(child.stderr, { clock, onLinger: lingering.add }),
      deadlineMs: spec.deadlineMs,
      clock,
      terminate: async () => {
        await tree.look();
        child.kill("SIGTERM");
      },
      killTree: async () => {
        await tree.kill();
      },
      judge: (exit) => {
        running.delete(record);
        return Promise.resolve(record.end === "stopped" ? { kind: "killed" } : toExecExit(exit));
      },
    });
    const exit = execution.exit.finally(() => release().catch(() => undefined));
    return { ...execution, exit };
  };

  const quiesce = async (id: string, signal: AbortSignal): Promise<void> => {
    for (const { marker, leader } of await execs.list(id)) {
      if (own.has(marker)) continue;
      signal.throwIfAborted();
      // One that was only starting has nobody who could tell it from what it started.
      if (leader === "starting") await createHostTree(execMarker(marker), clock).kill(signal);
      else if (leader !== "ended" && isLiving(leader))
        await createHostTree(execMarker(marker), clock, leader).kill(signal);
      await execs.remove(id, marker);
    }
  };

  return {
    kind: "none",
    isolation: "none",
    pausePreservesProcesses: "yes",
    open: ({ signal }) => {
      signal.throwIfAborted();
      return Promise.resolve({ version: `host kernel ${release()}` });
    },
    start: async (spec, { signal }) => {
      await lock.run(spec.id, async () => {
        signal.throwIfAborted();
        if ((await readLive(spec.id)) !== undefined) return;
        const root = await stat(spec.rootPath).catch(() => undefined);
        if (root?.isDirectory() !== true) throw invalidArgument("rootPath", "is not a directory");
        await records.write(spec.id, { rootPath: spec.rootPath, status: "running", bootId: await readBootId() });
      });
    },
    // Under the lock: nothing starts while the rest is being frozen or ended.
    exec: async (id, spec, { signal }) => await lock.run(id, async () => await exec(id, spec, signal)),
    spawn: async (id, spec, { signal }) =>
      await lock.run(id, async () => {
        signal.throwIfAborted();
        const { rootPath, status } = await requireLive(id);
        if (status === "paused") throw new SandboxError("INVALID_STATE", `container ${id} is paused`);
        const cwd = await findDirectory(rootPath, spec.cwd);
        const marks = [containerMarker(id), execMarker(spec.name)] as const;
        return await spawnOnHost({ runner, clock }, { spec, cwd, marks });
      }),
    tend: () => Promise.resolve(),
    inspect: async (id, process) => {
      const life = await inspectOnHost(process);
      return life.kind === "unknown" && (await readLive(id)) === undefined ? { kind: "sandbox_lost" } : life;
    },
    signal: async (_id, process, spec) => {
      await signalOnHost(process, spec, createHostTree(execMarker(process.name), clock));
    },
    endInput: async (_id, { directory }) => {
      await endWaiterInput(directory);
    },
    openTerminal: async (id, spec, size, { signal }) =>
      await lock.run(id, async () => {
        signal.throwIfAborted();
        const { rootPath, status } = await requireLive(id);
        if (status === "paused") throw new SandboxError("INVALID_STATE", `container ${id} is paused`);
        const marker = randomToken(MARKER_CHARS);
        const marks = { ...asVariable(execMarker(marker)), ...asVariable(containerMarker(id)) };
        const cwd = await findDirectory(rootPath, spec.cwd);
        const tree = createHostTree(execMarker(marker), clock);
        return await openTerminalOnHost({ runner, clock }, { spec: { ...spec, cwd }, size, marks, tree });
      }),
    quiesce: async (id, { signal }) => {
      await lock.run(
        id,
        async () => {
          await quiesce(id, signal);
        },
        signal,
      );
    },
    liveness: async (id) => (await readLive(id))?.status ?? "gone",
    findDead: async (ids) => {
      const records = await Promise.all(ids.map(async (id) => ({ id, record: await readLive(id) })));
      return records.filter(({ record }) => record === undefined).map(({ id }) => id);
    },
    processes: async (id, { signal }) => {
      signal.throwIfAborted();
      await requireLive(id);
      return (await treeOf(id).look()).length;
    },
    stats: async (id, { signal }) => {
      signal.throwIfAborted();
      await requireLive(id);
      const processes = await treeOf(id).look();
      return { ...(await readProcessUsage(processes.map(({ pid }) => pid))), processes: processes.length };
    },
    // Nothing is bounded here, and nothing is slow to start.
    limit: () => Promise.resolve(),
    anticipate: () => Promise.resolve(),
    expectNone: () => undefined,
    pause: async (id) => {
      await bringTo(id, "paused");
    },
    resume: async (id) => {
      await bringTo(id, "running");
    },
    stop: async (id, { signal }) => {
      await withinStopLimit(id, signal, async (limit) => {
        const end = async (): Promise<void> => {
          for (const execution of running) if (execution.id === id) execution.end = "stopped";
          await treeOf(id).kill(limit);
          await execs.removeAll(id);
          await records.remove(id);
        };
        await lock.run(id, end, limit);
      });
    },
    close: async () => Promise.resolve(),
    list: async () => await records.list(),
  };
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
