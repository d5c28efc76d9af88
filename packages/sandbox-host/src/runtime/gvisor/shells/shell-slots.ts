import { type Clock, createDeadline, randomToken, SandboxError, setAlarm } from "@turnbox/core";
import type { ExecSpec } from "../../runtime.ts";
import type { StartedProcess } from "../exec/start-process.ts";
import type { SharedLimits } from "../exec/shared-limits.ts";
import {
  parseShellCall,
  receiveGreeting,
  type ShellCall,
  scriptFor,
  waitingShell,
  type WaitingShell,
} from "./shell-call.ts";

export interface ShellSlotsOptions {
  /** Starts a process inside. */
  readonly start: (id: string, spec: ExecSpec) => Promise<StartedProcess>;
  /** Puts it on record that a process has work to do, or has none: a later service ends those that have some. */
  readonly record: (id: string, process: StartedProcess, work: "some" | "none") => void;
  /** Ends everything that a process has started or may come to start. */
  readonly abandon: (id: string, process: StartedProcess) => Promise<void>;
  /** Whether the container runs, and is not paused, at this moment. */
  readonly isRunning: (id: string) => Promise<boolean>;
  /** Has the container awake while the work is done. */
  readonly awake: (id: string, work: () => Promise<void>) => Promise<void>;
  /** Settles when no caller waits for something that matters more than a shell for later. */
  readonly calm: () => Promise<void>;
  /** Whether the limits of a shell can have been lowered while it waited. */
  readonly limits: Pick<SharedLimits, "mark" | "isIntact">;
  readonly clock: Clock;
  /** How many wait in a container whose calls come one at a time; 0 makes none. */
  readonly perContainer: number;
}

interface Slot {
  readonly process: StartedProcess;
  readonly env: Readonly<Record<string, string>>;
  /** What it says when its call begins; known to no other process before. */
  readonly greeting: string;
  /** What tells whether its limits are intact. */
  readonly limitsMark: number | undefined;
}

/** A shell that is being made: for the call that has claimed it, or to wait. */
interface Making extends Omit<Slot, "process"> {
  readonly made: Promise<Slot | undefined>;
  use: "wait" | "claimed";
}

/** The shells of one container. */
interface ContainerSlots {
  state: "open" | "closed";
  readonly waiting: Slot[];
  readonly making: Set<Making>;
  /** Those that have no call, until they have ended. */
  readonly idle: Set<number>;
  /** Of the latest call, and of the shells for the next ones. */
  env: Slot["env"];
  wanted: number;
  calledAtMs: number;
  refill: "due" | "none";
  expects: "calls" | "nothing";
}

const MAX_SLOTS = 64;
/** How many wait in one container at most, when its calls come faster than shells. */
const MAX_WANTED = 4;
const IDLE_MS = 60_000;
/** A short call has been answered by then, with the processors to itself. */
const REFILL_DELAY_MS = 60;
/** Calls that come closer together come faster than shells are made. */
const HURRY_MS = 100;
const GREETING_CHARS = 26;
const GREETING_MS = 10_000;
/** How long a shell may take to notice the end of its input. */
const END_MS = 1000;

/** What waits for later calls is made and ended beside them: a call that finds none starts a shell of its own. */
const ignoreFailure = (): void => undefined;

/**
 * Shells that have been started in containers and wait for a script. Such a shell does a call in a tenth of the time that
 * the start of a new one takes. Each does one call, and behaves in it as a new one would. Those that are not needed for a
 * while end, and all end with the service, whose end of their input closes.
 *
 * The next one is made a moment after a call has come, when a short one has been answered. When calls come faster, shells
 * are made at once, and a few more of them wait, until the container has been idle.
 */
export class ShellSlots {
  readonly #options: ShellSlotsOptions;
  readonly #containers = new Map<string, ContainerSlots>();
  readonly #idleAlarms = new Map<Slot, () => void>();
  #isReleased = false;
  #total = 0;

  constructor(options: ShellSlotsOptions) {
    this.#options = options;
  }

  /**
   * The process of the call, if a shell could take it, one that waits or one that is about to; undefined if none could, and
   * nothing of the call has run. A shell that does not say in time that it has begun is ended, and the call's outcome is
   * unknown.
   */
  async take(id: string, spec: ExecSpec, signal: AbortSignal): Promise<StartedProcess | undefined> {
    const call = parseShellCall(spec);
    if (call === undefined) return undefined;
    const slots = this.#slotsOf(id);
    const coming = this.#find(id, slots, call);
    this.#provide(id, slots, call).catch(ignoreFailure);
    const found = await coming;
    if (found !== undefined && signal.aborted) this.#end(found.slot).catch(ignoreFailure);
    signal.throwIfAborted();
    if (found === undefined) return undefined;
    const { slot, script } = found;
    const { process, greeting } = slot;
    process.command.stdin.write(script);
    using patience = createDeadline({ clock: this.#options.clock, ms: GREETING_MS, signal });
    const received = await receiveGreeting(process.stdout.output, greeting, patience.signal);
    if (received === "greeting") return process;
    if (received === "silence") await this.#options.abandon(id, process);
    await this.#end(slot);
    if (received === "end") return undefined;
    signal.throwIfAborted();
    throw new SandboxError("RUNTIME_UNAVAILABLE", `container ${id} does not start processes`, { admitted: "unknown" });
  }

  /** Makes shells for calls like this one. Settles when they wait, or cannot be made; never rejects. */
  async refill(id: string, spec: ExecSpec): Promise<void> {
    const call = parseShellCall(spec);
    if (call === undefined) return;
    const slots = this.#slotsOf(id);
    slots.env = call.env;
    await this.#refill(id, slots);
  }

  /** Makes no shells for later before the next call. */
  expectNone(id: string): void {
    const slots = this.#containers.get(id);
    if (slots !== undefined) slots.expects = "nothing";
  }

  /** Ends the shells of a container that wait, settles when they have ended, and makes none until it is opened again. */
  async close(id: string): Promise<void> {
    const slots = this.#slotsOf(id);
    slots.state = "closed";
    await Promise.all([...slots.making].map(({ made }) => made));
    await Promise.all([...slots.waiting].map((slot) => this.#endIdle(slots, slot)));
  }

  open(id: string): void {
    this.#containers.delete(id);
  }

  /** Settles when no shell is being made in the container; the pids inside of those that wait, or are about to end. */
  async settled(id: string): Promise<ReadonlySet<number>> {
    const slots = this.#containers.get(id);
    await Promise.all([...(slots?.making ?? [])].map(({ made }) => made));
    return slots?.idle ?? new Set();
  }

  /** Whether one is being made at this moment. */
  isMaking(id: string): boolean {
    return (this.#containers.get(id)?.making.size ?? 0) > 0;
  }

  /** Lets go of all that wait, which end by that, and makes no more. */
  release(): void {
    this.#isReleased = true;
    for (const turnOff of this.#idleAlarms.values()) turnOff();
    this.#idleAlarms.clear();
    for (const { waiting } of this.#containers.values()) for (const slot of waiting) closeStreams(slot);
  }

  #slotsOf(id: string): ContainerSlots {
    const slots = this.#containers.get(id) ?? {
      state: "open",
      waiting: [],
      making: new Set(),
      idle: new Set(),
      env: {},
      wanted: this.#options.perContainer,
      calledAtMs: Number.NEGATIVE_INFINITY,
      refill: "none",
      expects: "calls",
    };
    this.#containers.set(id, slots);
    return slots;
  }

  /** A shell for the call, with its script: one that waits, or one that is being made and waits for no other call. */
  async #find(
    id: string,
    slots: ContainerSlots,
    call: ShellCall,
  ): Promise<{ readonly slot: Slot; readonly script: string } | undefined> {
    for (const slot of slots.waiting) {
      const script = scriptFor(call, this.#asItWaits(id, slot));
      if (script === undefined || !this.#remove(slots, slot)) continue;
      this.#options.record(id, slot.process, "some");
      return { slot, script };
    }
    for (const shell of slots.making) {
      const script = shell.use === "wait" ? scriptFor(call, this.#asItWaits(id, shell)) : undefined;
      if (script === undefined) continue;
      shell.use = "claimed";
      const slot = await shell.made;
      return slot && { slot, script };
    }
    return undefined;
  }

  #asItWaits(id: string, { env, greeting, limitsMark }: Omit<Slot, "process">): WaitingShell {
    return { env, greeting, limits: this.#options.limits.isIntact(id, limitsMark) ? "intact" : "lowered" };
  }

  /** Has shells made for the calls that will follow this one. */
  async #provide(id: string, slots: ContainerSlots, { env }: ShellCall): Promise<void> {
    slots.env = env;
    slots.expects = "calls";
    const nowMs = this.#options.clock.monotonicMs();
    const isHurried = nowMs - slots.calledAtMs < HURRY_MS;
    slots.calledAtMs = nowMs;
    if (isHurried && slots.waiting.length === 0 && slots.wanted > 0) {
      slots.wanted = Math.min(slots.wanted + 1, MAX_WANTED);
      this.#refill(id, slots, 1).catch(ignoreFailure);
    }
    await this.#refillSoon(id, slots);
  }

  /** Once for all calls that come meanwhile, and not while any of them waits for a shell itself. */
  async #refillSoon(id: string, slots: ContainerSlots): Promise<void> {
    const { clock, calm } = this.#options;
    if (slots.refill === "due") return;
    slots.refill = "due";
    try {
      do await clock.sleep(REFILL_DELAY_MS);
      while (clock.monotonicMs() - slots.calledAtMs < REFILL_DELAY_MS || slots.making.size > 0);
      await calm();
    } finally {
      slots.refill = "none";
    }
    if (this.#containers.get(id) === slots && slots.expects === "calls") await this.#refill(id, slots);
  }

  async #refill(id: string, slots: ContainerSlots, upTo = slots.wanted): Promise<void> {
    const isClosed = slots.state === "closed" || this.#isReleased;
    const missing = isClosed ? 0 : Math.min(upTo - countFree(slots), MAX_SLOTS - this.#total);
    await Promise.all(Array.from({ length: Math.max(0, missing) }, () => this.#begin(id, slots)));
  }

  async #begin(id: string, slots: ContainerSlots): Promise<void> {
    const limitsMark = this.#options.limits.mark(id);
    const kind = { env: slots.env, greeting: randomToken(GREETING_CHARS), limitsMark };
    const made = this.#make(id, kind).catch(() => undefined);
    const making: Making = { ...kind, made, use: "wait" };
    this.#total += 1;
    slots.making.add(making);
    const slot = await made;
    slots.making.delete(making);
    if (slot === undefined || making.use === "claimed") {
      this.#total -= 1;
      return;
    }
    if (this.#isReleased) {
      this.#total -= 1;
      closeStreams(slot);
      return;
    }
    slots.idle.add(slot.process.pid);
    slots.waiting.push(slot);
    this.#keep(id, slots, slot);
    this.#options.record(id, slot.process, "none");
  }

  /** In a directory that is always there: a call changes to its own. */
  async #make(id: string, kind: Omit<Slot, "process">): Promise<Slot | undefined> {
    if (!(await this.#options.isRunning(id))) return undefined;
    const spec = { argv: waitingShell, env: kind.env, cwd: "/", deadlineMs: Number.MAX_SAFE_INTEGER };
    return { ...kind, process: await this.#options.start(id, spec) };
  }

  /** Ends a shell that is not used in time, and forgets one that ends by itself. */
  #keep(id: string, slots: ContainerSlots, slot: Slot): void {
    const { clock, awake, perContainer } = this.#options;
    const turnOff = setAlarm(clock, IDLE_MS, () => {
      this.#idleAlarms.delete(slot);
      slots.wanted = perContainer;
      awake(id, () => this.#endIdle(slots, slot)).catch(ignoreFailure);
    });
    this.#idleAlarms.set(slot, turnOff);
    const forget = (): void => {
      turnOff();
      this.#idleAlarms.delete(slot);
      if (!this.#remove(slots, slot)) return;
      closeStreams(slot);
      slot.process.release();
    };
    slot.process.command.ended.then(forget, forget).catch(ignoreFailure);
  }

  async #endIdle(slots: ContainerSlots, slot: Slot): Promise<void> {
    if (!this.#remove(slots, slot)) return;
    slots.idle.add(slot.process.pid);
    await this.#end(slot);
    slots.idle.delete(slot.process.pid);
  }

  #remove({ waiting, idle }: ContainerSlots, slot: Slot): boolean {
    const index = waiting.indexOf(slot);
    if (index < 0) return false;
    waiting.splice(index, 1);
    idle.delete(slot.process.pid);
    this.#total -= 1;
    return true;
  }

  async #end(slot: Slot): Promise<void> {
    const { process } = slot;
    closeStreams(slot);
    using patience = createDeadline({ clock: this.#options.clock, ms: END_MS });
    patience.signal.addEventListener("abort", () => {
      process.command.kill();
    });
    await process.command.ended;
    process.release();
  }
}

function countFree({ waiting, making }: ContainerSlots): number {
  return waiting.length + [...making].filter(({ use }) => use === "wait").length;
}

function closeStreams({ process }: Slot): void {
  for (const stream of [process.command.stdin, process.stdout.output, process.stderr.output]) stream.destroy();
}
