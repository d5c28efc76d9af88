import type { Readable } from "node:stream";
import { type Clock, createDeadline, randomToken, SandboxError } from "@turnbox/core";
import type { ExecSpec } from "../runtime.ts";
import type { StartedProcess } from "./exec.ts";
import { parseShellCall, type ShellCall, scriptFor, waitingShell } from "./shell-call.ts";

export interface ShellSlotsOptions {
  /** Starts a process inside. */
  readonly start: (id: string, spec: ExecSpec) => Promise<StartedProcess>;
  /** Puts it on record that a process has work to do, or has none: a later service ends those that have some. */
  readonly record: (id: string, process: StartedProcess, work: "some" | "none") => Promise<void>;
  /** Ends everything that a process has started or may come to start. */
  readonly abandon: (id: string, process: StartedProcess) => Promise<void>;
  /** Whether the container runs, and is not paused, at this moment. */
  readonly isRunning: (id: string) => Promise<boolean>;
  readonly clock: Clock;
  /** How many wait in a container at most; 0 makes none. */
  readonly perContainer: number;
}

/**
 * Shells that have been started in containers and wait for a script. Such a shell does a call in a tenth of the time that
 * the start of a new one takes. Each does one call, and behaves in it as a new one would. Those that nobody needs for a
 * while end, and all end with the service, whose end of their input closes.
 */
export interface ShellSlots {
  /**
   * The process of the call, where a shell could take it; undefined where none could, and nothing of the call has run. A
   * shell that does not say in time that it has begun is ended, and the call's outcome is unknown.
   */
  take(id: string, spec: ExecSpec, signal: AbortSignal): Promise<StartedProcess | undefined>;
  /** Makes shells for calls like this one. Settles when they wait, or cannot be made; never rejects. */
  refill(id: string, spec: ExecSpec): Promise<void>;
  /** Ends the shells of a container that wait, answers when they have ended, and makes none until it is opened again. */
  close(id: string): Promise<void>;
  open(id: string): void;
  /** Settles when no shell is being made in the container; the pids inside of those that wait, or are about to end. */
  settled(id: string): Promise<ReadonlySet<number>>;
  /** Whether one is being made at this moment. */
  isMaking(id: string): boolean;
}

interface Slot {
  readonly process: StartedProcess;
  readonly env: Readonly<Record<string, string>>;
}

const MAX_SLOTS = 64;
const IDLE_MS = 60_000;
const GREETING_CHARS = 26;
const GREETING_MS = 10_000;
/** How long a shell may take to notice the end of its input. */
const END_MS = 1000;

export function createShellSlots(options: ShellSlotsOptions): ShellSlots {
  const { start, record, isRunning, clock, perContainer } = options;
  const waiting = new Map<string, Slot[]>();
  const making = new Map<string, Promise<void>>();
  const closed = new Set<string>();
  /** Those that have no call, until they have ended. */
  const idle = new Map<string, Set<number>>();
  let total = 0;

  const remove = (id: string, slot: Slot): boolean => {
    const slots = waiting.get(id);
    const index = slots?.indexOf(slot) ?? -1;
    if (slots === undefined || index < 0) return false;
    slots.splice(index, 1);
    if (slots.length === 0) waiting.delete(id);
    total -= 1;
    return true;
  };
  const release = (id: string, { process }: Slot): void => {
    const pids = idle.get(id);
    pids?.delete(process.pid);
    if (pids?.size === 0) idle.delete(id);
  };
  const close = ({ process }: Slot): void => {
    for (const stream of [process.command.stdin, process.stdout.output, process.stderr.output]) stream.destroy();
  };
  const end = async (slot: Slot): Promise<void> => {
    const { process } = slot;
    close(slot);
    using patience = createDeadline({ clock, ms: END_MS });
    patience.signal.addEventListener("abort", () => {
      process.command.kill();
    });
    await process.command.ended;
    await process.release();
  };
  /** Ends by itself where it is not used, and is forgotten where it ends. */
  const keep = (id: string, slot: Slot): void => {
    const over = new AbortController();
    clock.sleep(IDLE_MS, { signal: over.signal }).then(
      () => {
        if (remove(id, slot)) void end(slot);
      },
      () => undefined,
    );
    void slot.process.command.ended.then(() => {
      over.abort();
      release(id, slot);
      if (!remove(id, slot)) return;
      close(slot);
      void slot.process.release();
    });
  };

  const make = async (id: string, { env, cwd }: ShellCall): Promise<void> => {
    while (!closed.has(id) && (waiting.get(id)?.length ?? 0) < perContainer && total < MAX_SLOTS) {
      if (!(await isRunning(id))) return;
      const process = await start(id, { argv: waitingShell, env, cwd, deadlineMs: Number.MAX_SAFE_INTEGER });
      await record(id, process, "none");
      const slot = { process, env };
      const pids = idle.get(id) ?? new Set();
      idle.set(id, pids.add(process.pid));
      total += 1;
      waiting.set(id, [...(waiting.get(id) ?? []), slot]);
      keep(id, slot);
    }
  };

  return {
    take: async (id, spec, signal) => {
      const call = parseShellCall(spec);
      const slot = waiting.get(id)?.[0];
      if (call === undefined || slot === undefined) return undefined;
      const greeting = randomToken(GREETING_CHARS);
      const script = scriptFor(call, { env: slot.env, greeting });
      if (script === undefined || !remove(id, slot)) return undefined;
      const { process } = slot;
      release(id, slot);
      await record(id, process, "some");
      process.command.stdin.write(script);
      using patience = createDeadline({ clock, ms: GREETING_MS, signal });
      const heard = await hear(process.stdout.output, greeting, patience.signal);
      if (heard === "greeting") return process;
      if (heard === "silence") await options.abandon(id, process);
      await end(slot);
      if (heard === "end") return undefined;
      signal.throwIfAborted();
      throw new SandboxError("RUNTIME_UNAVAILABLE", `container ${id} does not start processes`, {
        admitted: "unknown",
      });
    },
    refill: async (id, spec) => {
      const call = parseShellCall(spec);
      if (call === undefined) return;
      const made =
        making.get(id) ??
        make(id, call)
          .catch(() => undefined)
          .finally(() => making.delete(id));
      making.set(id, made);
      await made;
    },
    close: async (id) => {
      closed.add(id);
      await making.get(id);
      const slots = [...(waiting.get(id) ?? [])];
      await Promise.all(slots.filter((slot) => remove(id, slot)).map(end));
    },
    open: (id) => {
      closed.delete(id);
    },
    settled: async (id) => {
      await making.get(id);
      return idle.get(id) ?? new Set();
    },
    isMaking: (id) => making.has(id),
  };
}

/** Takes the greeting off the output, or tells that the output has ended before it, or the patience. */
async function hear(
  output: Readable,
  greeting: string,
  patience: AbortSignal,
): Promise<"greeting" | "end" | "silence"> {
  for (;;) {
    const first = output.read(greeting.length) as Buffer | null;
    if (first?.toString("latin1") === greeting) return "greeting";
    if (output.readableEnded || output.destroyed) return "end";
    // Whatever says something else is not to be trusted with a second run.
    if (first !== null || patience.aborted) return "silence";
    await readable(output, patience);
  }
}

/** Settles when there may be something to read, or nothing will come. */
async function readable(output: Readable, patience: AbortSignal): Promise<void> {
  const events = ["readable", "end", "close"] as const;
  await new Promise<void>((resolve) => {
    const settle = (): void => {
      for (const event of events) output.off(event, settle);
      patience.removeEventListener("abort", settle);
      resolve();
    };
    for (const event of events) output.on(event, settle);
    patience.addEventListener("abort", settle, { once: true });
  });
}
