import { type Clock, createDeadline, randomToken, SandboxError, setAlarm } from "@turnbox/core";
import type { ExecSpec } from "../runtime.ts";
import type { StartedProcess } from "./exec.ts";
import { parseShellCall, type ShellCall, scriptFor, waitingShell } from "./shell-call.ts";
import { hearGreeting } from "./shell-greeting.ts";

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
  /** Settles when nobody waits for something that matters more than a shell for later. */
  readonly calm: () => Promise<void>;
  readonly clock: Clock;
  /** How many wait in a container whose calls come one at a time; 0 makes none. */
  readonly perContainer: number;
}

/**
 * Shells that have been started in containers and wait for a script. Such a shell does a call in a tenth of the time that
 * the start of a new one takes. Each does one call, and behaves in it as a new one would. Those that nobody needs for a
 * while end, and all end with the service, whose end of their input closes.
 *
 * The next one is made a moment after a call has come, when a short one has been answered. Where calls come faster, shells
 * are made at once, and a few more of them wait, until the container has been idle.
 */
export interface ShellSlots {
  /**
   * The process of the call, where a shell could take it, one that waits or one that is about to; undefined where none
   * could, and nothing of the call has run. A shell that does not say in time that it has begun is ended, and the call's
   * outcome is unknown.
   */
  take(id: string, spec: ExecSpec, signal: AbortSignal): Promise<StartedProcess | undefined>;
  /** Makes shells for calls like this one. Settles when they wait, or cannot be made; never rejects. */
  refill(id: string, spec: ExecSpec): Promise<void>;
  /** Makes no shells for later before the next call. */
  expectNone(id: string): void;
  /** Ends the shells of a container that wait, answers when they have ended, and makes none until it is opened again. */
  close(id: string): Promise<void>;
  open(id: string): void;
  /** Settles when no shell is being made in the container; the pids inside of those that wait, or are about to end. */
  settled(id: string): Promise<ReadonlySet<number>>;
  /** Whether one is being made at this moment. */
  isMaking(id: string): boolean;
  /** Lets go of all that wait, which end by that, and makes no more. */
  release(): void;
}

interface Slot {
  readonly process: StartedProcess;
  readonly env: Readonly<Record<string, string>>;
  /** What it says when its call begins; known to nobody before. */
  readonly greeting: string;
}

/** A shell that is being made: for the call that has claimed it, or to wait. */
interface Making extends Pick<Slot, "env" | "greeting"> {
  readonly made: Promise<Slot | undefined>;
  use: "wait" | "claimed";
}

interface Room {
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
/** How many wait in one container at most, where its calls come faster than shells. */
const MAX_WANTED = 4;
const IDLE_MS = 60_000;
/** A short call has been answered by then; nobody shares the processors with it. */
const REFILL_DELAY_MS = 60;
/** Calls that come closer together come faster than shells are made. */
const HURRY_MS = 100;
const GREETING_CHARS = 26;
const GREETING_MS = 10_000;
/** How long a shell may take to notice the end of its input. */
const END_MS = 1000;

/** What waits for later calls is made and ended beside them: a call that finds none starts a shell of its own. */
const ignoreFailure = (): void => undefined;

export function createShellSlots(options: ShellSlotsOptions): ShellSlots {
  const { start, record, isRunning, clock, perContainer } = options;
  const rooms = new Map<string, Room>();
  const idleAlarms = new Map<Slot, () => void>();
  let isReleased = false;
  let total = 0;

  const roomOf = (id: string): Room => {
    const room = rooms.get(id) ?? {
      state: "open",
      waiting: [],
      making: new Set(),
      idle: new Set(),
      env: {},
      wanted: perContainer,
      calledAtMs: Number.NEGATIVE_INFINITY,
      refill: "none",
      expects: "calls",
    };
    rooms.set(id, room);
    return room;
  };
  const remove = ({ waiting, idle }: Room, slot: Slot): boolean => {
    const index = waiting.indexOf(slot);
    if (index < 0) return false;
    waiting.splice(index, 1);
    idle.delete(slot.process.pid);
    total -= 1;
    return true;
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
    process.release();
  };
  const endIdle = async (room: Room, slot: Slot): Promise<void> => {
    if (!remove(room, slot)) return;
    room.idle.add(slot.process.pid);
    await end(slot);
    room.idle.delete(slot.process.pid);
  };
  /** Ends by itself where it is not used, and is forgotten where it ends. */
  const keep = (id: string, room: Room, slot: Slot): void => {
    const turnOff = setAlarm(clock, IDLE_MS, () => {
      idleAlarms.delete(slot);
      room.wanted = perContainer;
      options.awake(id, () => endIdle(room, slot)).catch(ignoreFailure);
    });
    idleAlarms.set(slot, turnOff);
    const forget = (): void => {
      turnOff();
      idleAlarms.delete(slot);
      if (!remove(room, slot)) return;
      close(slot);
      slot.process.release();
    };
    slot.process.command.ended.then(forget, forget).catch(ignoreFailure);
  };

  /** In a directory that is always there: a call changes to its own. */
  const make = async (id: string, { env, greeting }: Omit<Slot, "process">): Promise<Slot | undefined> => {
    if (!(await isRunning(id))) return undefined;
    const process = await start(id, { argv: waitingShell, env, cwd: "/", deadlineMs: Number.MAX_SAFE_INTEGER });
    return { process, env, greeting };
  };
  const begin = async (id: string, room: Room): Promise<void> => {
    const kind = { env: room.env, greeting: randomToken(GREETING_CHARS) };
    const made = make(id, kind).catch(() => undefined);
    const making: Making = { ...kind, made, use: "wait" };
    total += 1;
    room.making.add(making);
    const slot = await made;
    room.making.delete(making);
    if (slot === undefined || making.use === "claimed") {
      total -= 1;
      return;
    }
    if (isReleased) {
      total -= 1;
      close(slot);
      return;
    }
    room.idle.add(slot.process.pid);
    room.waiting.push(slot);
    keep(id, room, slot);
    record(id, slot.process, "none");
  };
  const free = ({ waiting, making }: Room): number =>
    waiting.length + [...making].filter(({ use }) => use === "wait").length;
  const refill = async (id: string, room: Room, upTo = room.wanted): Promise<void> => {
    const missing = room.state === "closed" || isReleased ? 0 : Math.min(upTo - free(room), MAX_SLOTS - total);
    await Promise.all(Array.from({ length: Math.max(0, missing) }, () => begin(id, room)));
  };
  /** Once for all calls that come meanwhile, and not while any of them waits for a shell itself. */
  const refillSoon = async (id: string, room: Room): Promise<void> => {
    if (room.refill === "due") return;
    room.refill = "due";
    try {
      do await clock.sleep(REFILL_DELAY_MS);
      while (clock.monotonicMs() - room.calledAtMs < REFILL_DELAY_MS || room.making.size > 0);
      await options.calm();
    } finally {
      room.refill = "none";
    }
    if (rooms.get(id) === room && room.expects === "calls") await refill(id, room);
  };

  /** A shell for the call, with its script: one that waits, or one that is being made and waits for nobody else. */
  const find = async (
    id: string,
    room: Room,
    call: ShellCall,
  ): Promise<{ readonly slot: Slot; readonly script: string } | undefined> => {
    for (const slot of room.waiting) {
      const script = scriptFor(call, slot);
      if (script === undefined || !remove(room, slot)) continue;
      record(id, slot.process, "some");
      return { slot, script };
    }
    for (const making of room.making) {
      const script = making.use === "wait" ? scriptFor(call, making) : undefined;
      if (script === undefined) continue;
      making.use = "claimed";
      const slot = await making.made;
      return slot && { slot, script };
    }
    return undefined;
  };
  /** Has shells made for the calls that will follow this one. */
  const provide = async (id: string, room: Room, { env }: ShellCall): Promise<void> => {
    room.env = env;
    room.expects = "calls";
    const nowMs = clock.monotonicMs();
    const isHurried = nowMs - room.calledAtMs < HURRY_MS;
    room.calledAtMs = nowMs;
    if (isHurried && room.waiting.length === 0 && room.wanted > 0) {
      room.wanted = Math.min(room.wanted + 1, MAX_WANTED);
      refill(id, room, 1).catch(ignoreFailure);
    }
    await refillSoon(id, room);
  };

  return {
    take: async (id, spec, signal) => {
      const call = parseShellCall(spec);
      if (call === undefined) return undefined;
      const room = roomOf(id);
      const coming = find(id, room, call);
      provide(id, room, call).catch(ignoreFailure);
      const found = await coming;
      if (found !== undefined && signal.aborted) end(found.slot).catch(ignoreFailure);
      signal.throwIfAborted();
      if (found === undefined) return undefined;
      const { slot, script } = found;
      const { process, greeting } = slot;
      process.command.stdin.write(script);
      using patience = createDeadline({ clock, ms: GREETING_MS, signal });
      const heard = await hearGreeting(process.stdout.output, greeting, patience.signal);
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
      const room = roomOf(id);
      room.env = call.env;
      await refill(id, room);
    },
    expectNone: (id) => {
      const room = rooms.get(id);
      if (room !== undefined) room.expects = "nothing";
    },
    close: async (id) => {
      const room = roomOf(id);
      room.state = "closed";
      await Promise.all([...room.making].map(({ made }) => made));
      await Promise.all([...room.waiting].map((slot) => endIdle(room, slot)));
    },
    open: (id) => {
      rooms.delete(id);
    },
    settled: async (id) => {
      const room = rooms.get(id);
      await Promise.all([...(room?.making ?? [])].map(({ made }) => made));
      return room?.idle ?? new Set();
    },
    isMaking: (id) => (rooms.get(id)?.making.size ?? 0) > 0,
    release: () => {
      isReleased = true;
      for (const turnOff of idleAlarms.values()) turnOff();
      idleAlarms.clear();
      for (const { waiting } of rooms.values()) for (const slot of waiting) close(slot);
    },
  };
}
