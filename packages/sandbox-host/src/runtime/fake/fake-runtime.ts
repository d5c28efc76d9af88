import { stat } from "node:fs/promises";
import { type Clock, invalidArgument, type RunningCommand, SandboxError, systemClock } from "@turnbox/core";
import { relayOutput } from "../execution/relay-output.ts";
import { superviseExecution } from "../execution/supervise-execution.ts";
import type { ContainerSpec, Execution, ExecSpec, Runtime } from "../runtime.ts";
import { startFakeCommand } from "./fake-command.ts";
import { createFakeSpawned, type FakeSpawned } from "./fake-spawned.ts";
import { createFakeTerminal } from "./fake-terminal.ts";
import { FAKE_PROGRAMS, type FakeProgram, toHostPath } from "./fake-program.ts";

/** Tells instances over one machine apart. */
type FakeInstance = symbol;

interface FakeContainer {
  readonly spec: ContainerSpec;
  status: "running" | "paused" | "gone";
  end: "lost" | "oom" | "stopped" | undefined;
  /** What runs in it, and the instance that started it. */
  readonly commands: Map<RunningCommand, FakeInstance>;
  readonly waiting: Set<() => void>;
  /** How many commands there were. */
  started: number;
  /** What outlives an instance, by the names of its processes. */
  readonly spawned: Map<string, FakeSpawned>;
}

/** What a fake command is said to use. */
const COMMAND_CPU_MS = 10;
const COMMAND_BYTES = 1024 * 1024;

/** What outlives an instance of the runtime, as state directory and containers outlive the service. */
export type FakeMachine = Map<string, FakeContainer>;

export function createFakeMachine(): FakeMachine {
  return new Map();
}

export interface FakeRuntimeOptions {
  readonly clock?: Clock;
  readonly machine?: FakeMachine;
  /** What a command line does; if it says nothing, `FAKE_PROGRAMS` decides. */
  readonly programOf?: (argv: readonly string[]) => FakeProgram | undefined;
  /** If given, `open` fails with this reason. */
  readonly unavailable?: string;
}

export interface FakeRuntime extends Runtime {
  /** Ends a container as a dying sentry does: at once, with everything in it. */
  crash(id: string, cause: "lost" | "oom"): void;
  /** The containers that executions were said to come in, as often as it was said. */
  readonly anticipated: readonly string[];
  /** Those in which none were said to come, likewise. */
  readonly unexpected: readonly string[];
}

/** A runtime for tests of its users: programs are functions that run in this process, on the real files of the root. */
export function createFakeRuntime(options: FakeRuntimeOptions = {}): FakeRuntime {
  const clock = options.clock ?? systemClock;
  const machine = options.machine ?? createFakeMachine();
  const instance: FakeInstance = Symbol("instance");
  const anticipated: string[] = [];
  const unexpected: string[] = [];

  const live = (id: string): FakeContainer => {
    const container = machine.get(id);
    if (container === undefined || container.status === "gone") {
      throw new SandboxError("SANDBOX_LOST", `container ${id} does not run`, { admitted: "no" });
    }
    return container;
  };

  const end = (container: FakeContainer, cause: "lost" | "oom" | "stopped"): void => {
    container.status = "gone";
    container.end = cause;
    for (const command of container.commands.keys()) command.kill();
    for (const { command } of container.spawned.values()) command.kill();
    wake(container);
  };

  const launch = async (
    container: FakeContainer,
    spec: Pick<ExecSpec, "argv" | "env" | "cwd">,
  ): Promise<RunningCommand> => {
    const { id } = container.spec;
    if (container.status === "paused") throw new SandboxError("INVALID_STATE", `container ${id} is paused`);
    const program = options.programOf?.(spec.argv) ?? builtIn(spec.argv[0]);
    if (program === undefined) throw invalidArgument("argv", "there is no such program");
    const directory = await stat(toHostPath(container.spec.rootPath, "/", spec.cwd)).catch(() => undefined);
    if (directory?.isDirectory() !== true) throw invalidArgument("cwd", "there is no such directory");
    const breathe = async (): Promise<void> => {
      while (container.status === "paused") await new Promise<void>((resolve) => container.waiting.add(resolve));
    };
    container.started += 1;
    return startFakeCommand({ program, container: container.spec, spec, breathe });
  };

  const exec = async (id: string, spec: ExecSpec, signal: AbortSignal): Promise<Execution> => {
    signal.throwIfAborted();
    const container = live(id);
    const command = await launch(container, spec);
    container.commands.set(command, instance);
    void command.ended.then(() => container.commands.delete(command));
    const killTree = (): Promise<void> => {
      command.kill();
      return Promise.resolve();
    };
    return superviseExecution({
      command,
      stdout: relayOutput(command.stdout, { clock, onLinger: () => undefined }),
      stderr: relayOutput(command.stderr, { clock, onLinger: () => undefined }),
      deadlineMs: spec.deadlineMs,
      clock,
      terminate: killTree,
      killTree,
      judge: (exit) => {
        if (exit.kind === "exited") return Promise.resolve(exit);
        const kind = container.end === "oom" ? "oom" : container.end === "lost" ? "sandbox_lost" : "killed";
        return Promise.resolve({ kind });
      },
    });
  };

  return {
    kind: "fake",
    isolation: "none",
    pausePreservesProcesses: "yes",
    open: ({ signal }) => {
      signal.throwIfAborted();
      if (options.unavailable === undefined) return Promise.resolve({ version: "fake" });
      return Promise.reject(new SandboxError("RUNTIME_UNAVAILABLE", options.unavailable));
    },
    start: async (spec, { signal }) => {
      signal.throwIfAborted();
      const root = await stat(spec.rootPath).catch(() => undefined);
      if (root?.isDirectory() !== true) throw invalidArgument("rootPath", "is not a directory");
      const present = machine.get(spec.id);
      if (present !== undefined && present.status !== "gone") return;
      machine.set(spec.id, {
        spec,
        status: "running",
        end: undefined,
        commands: new Map(),
        waiting: new Set(),
        started: 0,
        spawned: new Map(),
      });
    },
    exec: async (id, spec, { signal }) => await exec(id, spec, signal),
    spawn: async (id, spec, { signal }) => {
      signal.throwIfAborted();
      const container = live(id);
      const command = await launch(container, spec);
      const spawned = await createFakeSpawned(command, spec);
      container.spawned.set(spec.name, spawned);
      return { pid: container.started };
    },
    tend: () => Promise.resolve(),
    inspect: async (id, { name }) => {
      await Promise.resolve();
      const container = machine.get(id);
      const spawned = container?.spawned.get(name);
      if (spawned === undefined) return { kind: "unknown" };
      if (spawned.life.kind !== "signaled" || container?.status !== "gone") return spawned.life;
      return { kind: container.end === "oom" ? "oom" : "sandbox_lost" };
    },
    signal: async (id, { name }, { signal }) => {
      await machine.get(id)?.spawned.get(name)?.signal(signal);
    },
    endInput: async (id, { name }) => {
      await machine.get(id)?.spawned.get(name)?.endInput();
    },
    openTerminal: async (id, spec, _size, { signal }) => {
      signal.throwIfAborted();
      const container = live(id);
      const command = await launch(container, spec);
      container.commands.set(command, instance);
      void command.ended.then(() => container.commands.delete(command));
      return createFakeTerminal(command);
    },
    quiesce: async (id, { signal }) => {
      signal.throwIfAborted();
      const commands = [...(machine.get(id)?.commands ?? [])].filter(([, owner]) => owner !== instance);
      for (const [command] of commands) command.kill();
      await Promise.all(commands.map(([command]) => command.ended));
    },
    liveness: (id) => Promise.resolve(machine.get(id)?.status ?? "gone"),
    findDead: (ids) => Promise.resolve(ids.filter((id) => (machine.get(id)?.status ?? "gone") === "gone")),
    processes: async (id, { signal }) => {
      signal.throwIfAborted();
      return await Promise.resolve(countOf(live(id)));
    },
    stats: async (id, { signal }) => {
      signal.throwIfAborted();
      const container = await Promise.resolve(live(id));
      const processes = countOf(container);
      return {
        cpuMs: container.started * COMMAND_CPU_MS,
        memoryBytes: (1 + processes) * COMMAND_BYTES,
        processes,
      };
    },
    limit: async (id) => {
      await Promise.resolve();
      live(id);
    },
    anticipated,
    unexpected,
    prewarm: {
      hurry: () => undefined,
      anticipate: async (id) => {
        await Promise.resolve();
        anticipated.push(id);
      },
      expectNone: (id) => void unexpected.push(id),
    },
    pause: async (id) => {
      await Promise.resolve();
      live(id).status = "paused";
    },
    resume: async (id) => {
      await Promise.resolve();
      const container = live(id);
      container.status = "running";
      wake(container);
    },
    stop: async (id, { signal }) => {
      signal.throwIfAborted();
      const container = machine.get(id);
      if (container === undefined) return;
      const spawned = [...container.spawned.values()].map(({ command }) => command);
      const ends = [...container.commands.keys(), ...spawned].map((command) => command.ended);
      if (container.status !== "gone") end(container, "stopped");
      await Promise.all(ends);
      machine.delete(id);
    },
    close: () => Promise.resolve(),
    list: () => Promise.resolve([...machine.keys()].toSorted()),
    crash: (id, cause) => {
      end(live(id), cause);
    },
  };
}

function countOf({ commands, spawned }: FakeContainer): number {
  return commands.size + [...spawned.values()].filter(({ life }) => life.kind === "running").length;
}

function builtIn(name: string): FakeProgram | undefined {
  return Object.hasOwn(FAKE_PROGRAMS, name) ? FAKE_PROGRAMS[name] : undefined;
}

function wake(container: FakeContainer): void {
  for (const resume of container.waiting) resume();
  container.waiting.clear();
}
