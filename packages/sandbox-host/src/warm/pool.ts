import type { Clock } from "@turnbox/core";
import { inParallel } from "../async/in-parallel.ts";
import type { Blueprint } from "../lifecycle/make.ts";
import type { SessionRow } from "../record/row.ts";
import type { BaseRef, Storage } from "../storage/storage.ts";
import { createDeferredMarks } from "./deferred-marks.ts";
import { createMemberLifecycle, type MemberLifecycleParts, type ReceiptOf } from "./member-lifecycle.ts";
import { isOf, kindFor, kindOf, WARM_KINDS, type WarmKind, type WarmMember } from "./member.ts";

export interface WarmPoolOptions {
  /** How many of each kind stand ready for each template that is in use; 0 makes none. */
  readonly sizes: Readonly<Record<WarmKind, number>>;
  /** How long the pool waits after a create before it makes another one: creates of a burst are not held up by it. */
  readonly refillDelayMs: number;
  /** Most that are made in a second. */
  readonly refillPerSecond: number;
  /** Those that an earlier service left ready. */
  readonly left: readonly WarmMember[];
}

/**
 * Sessions that stand ready before anybody asks for them: files cloned, container booted, shells waiting. They have no
 * name, no tenant and have run nothing of anybody's; a create gives one its name and all that it asked for. On record
 * they are sessions that are being made and ready: a restart takes those up again that nobody has begun to use, and the
 * others away.
 */
export interface WarmPool extends AsyncDisposable {
  /** Makes no more, and leaves those that are ready as they are: what a crash does. */
  abandon(): Promise<void>;
  /**
   * Makes one of them into this session, usable with one commit. Undefined where none is ready, or the one that was could
   * not be given what the session wants: it goes then.
   */
  provide(wanted: Blueprint, receiptOf: ReceiptOf, call: Call): Promise<SessionRow | undefined>;
  /** Says that sessions of this template will be asked for. */
  expect(base: BaseRef): void;
  /** Ends those of a template, or all: they stand on files that are to go, or have gone. */
  release(base?: BaseRef): Promise<void>;
  stats(): WarmStats;
  /** Leaves those that are ready frozen, for the next service. */
  [Symbol.asyncDispose](): Promise<void>;
}

interface Call {
  readonly signal: AbortSignal;
}

export interface WarmStats {
  readonly ready: number;
  readonly hits: number;
  readonly misses: number;
}

/** Templates beyond these, the longest unused first, have none standing ready. */
const MAX_TEMPLATES = 4;
const MAKE_TIMEOUT_MS = 60_000;
const DROP_TIMEOUT_MS = 15_000;
const FREEZE_TIMEOUT_MS = 3_000;
const RETRY_MS = 10_000;
/** How often a full pool looks whether there is still room for it. */
const LOOK_MS = 10_000;
const MS_PER_SECOND = 1000;
/** How many that an earlier service left are looked at at once. */
const LANES = 4;

export interface WarmPoolParts extends MemberLifecycleParts {
  readonly storage: Pick<Storage, "mountHead" | "boundSession" | "markSession">;
  /** Whether there is memory and space to spare. */
  readonly hasRoom: () => Promise<boolean>;
  readonly clock: Clock;
}

export function createWarmPool(deps: WarmPoolParts, options: WarmPoolOptions): WarmPool {
  const { clock, log } = deps;
  const { sizes } = options;
  const members = createMemberLifecycle(deps);
  const marks = createDeferredMarks(deps);
  let ready: readonly WarmMember[] = [];
  /** In the order of their last use. */
  const wanted = new Map<string, BaseRef>();
  const stop = new AbortController();
  const isOver = (): boolean => stop.signal.aborted;
  const isOff = WARM_KINDS.every((kind) => sizes[kind] === 0);
  let wake = (): void => undefined;
  /** Until then none is made, because of a create. Creates that follow do not put it off further. */
  let notBeforeMs = 0;
  /** Raised whenever what stands ready, or is being made, is not to be used. */
  let releases = 0;
  /** What is being made or taken up. */
  let current: Promise<void> = Promise.resolve();
  /** Removals that nobody waits for. */
  const leaving = new Set<Promise<void>>();
  let hits = 0;
  let misses = 0;

  const want = (base: BaseRef, delayMs: number): void => {
    wanted.delete(keyOf(base));
    wanted.set(keyOf(base), base);
    const [oldest] = wanted.keys();
    if (wanted.size > MAX_TEMPLATES && oldest !== undefined) wanted.delete(oldest);
    const nowMs = clock.monotonicMs();
    if (notBeforeMs <= nowMs) notBeforeMs = nowMs + delayMs;
    wake();
  };
  const drop = async (member: WarmMember): Promise<void> => {
    await members.drop(member, { signal: AbortSignal.timeout(DROP_TIMEOUT_MS) }).catch((err: unknown) => {
      log.warn({ err, token: member.token }, "a warm session is taken away at the next start");
    });
  };
  /** For creates, which wait for no removal. */
  const dropBehind = (member: WarmMember): void => {
    const dropped = drop(member).finally(() => void leaving.delete(dropped));
    leaving.add(dropped);
  };
  const dropWhere = async (isToGo: (member: WarmMember) => boolean): Promise<void> => {
    const going = ready.filter(isToGo);
    ready = ready.filter((member) => !going.includes(member));
    await Promise.all(going.map(drop));
  };
  const ofKind = (base: BaseRef, kind: WarmKind): readonly WarmMember[] =>
    ready.filter((member) => isOf(member, base) && kindOf(member) === kind);

  /** Lets one join that was made or taken up since `begun`, unless it is not to be used any more. */
  const join = async (member: WarmMember, begun: number): Promise<void> => {
    if (releases === begun) ready = [...ready, member];
    else await drop(member);
  };
  const makeOne = async (base: BaseRef, kind: WarmKind): Promise<void> => {
    const begun = releases;
    const call = { signal: AbortSignal.any([stop.signal, AbortSignal.timeout(MAKE_TIMEOUT_MS)]) };
    await join(await members.make(base, kind, call), begun);
  };
  const takeUpOne = async (member: WarmMember, begun: number): Promise<void> => {
    const call = { signal: AbortSignal.any([stop.signal, AbortSignal.timeout(MAKE_TIMEOUT_MS)]) };
    const state = await members.takeUp(member, call).catch((err: unknown) => {
      if (!isOver()) log.warn({ err, token: member.token }, "a warm session could not be taken up again");
      return "stale" as const;
    });
    // What a stop has cut off is looked at by the next service.
    if (isOver()) return;
    if (state === "stale") {
      await drop(member);
      return;
    }
    if (releases === begun) want(member.base, 0);
    await join(member, begun);
  };
  /** Takes up what an earlier service left, as many as there are to be of each kind. */
  const takeUpAll = async (): Promise<void> => {
    const begun = releases;
    const counts = new Map<string, number>();
    const isSpare = (member: WarmMember): boolean => {
      const key = `${kindOf(member)} ${keyOf(member.base)}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
      return (counts.get(key) ?? 0) > sizes[kindOf(member)];
    };
    const { kept = [], spare = [] } = Object.groupBy(options.left, (member) => (isSpare(member) ? "spare" : "kept"));
    await inParallel(kept, LANES, async (member) => {
      if (!isOver()) await takeUpOne(member, begun);
    });
    await inParallel(spare, LANES, drop);
  };

  /** What is lacking: first of those without a network, and then of the template used last. */
  const lacking = (): { readonly base: BaseRef; readonly kind: WarmKind } | undefined => {
    const bases = [...wanted.values()].reverse();
    const pairs = WARM_KINDS.flatMap((kind) => bases.map((base) => ({ base, kind })));
    return pairs.find(({ base, kind }) => ofKind(base, kind).length < sizes[kind]);
  };
  const nap = async (ms: number): Promise<void> => {
    await clock.sleep(ms, { signal: stop.signal }).catch(() => undefined);
  };
  /** Waits for a create, or until it is time to look for room again. */
  const untilWanted = async (): Promise<void> => {
    const woken = Promise.withResolvers<void>();
    wake = woken.resolve;
    await Promise.race([woken.promise, nap(LOOK_MS)]);
  };
  /** Takes away those whose sandbox has died: they do not stand ready. */
  const dropDead = async (): Promise<void> => {
    const containers = ready.map(({ container }) => container);
    const dead = new Set(await deps.runtime.findDead(containers, { signal: stop.signal }));
    await dropWhere(({ container }) => dead.has(container));
  };
  /** Takes away what is of templates that nobody uses any more, or everything where there is no room for it. */
  const giveWay = async (): Promise<"room" | "none"> => {
    const hasRoom = await deps.hasRoom();
    await dropWhere(({ base }) => !hasRoom || !wanted.has(keyOf(base)));
    await dropDead();
    return hasRoom ? "room" : "none";
  };
  const refill = async (): Promise<void> => {
    while (!isOver()) {
      try {
        const room = await giveWay();
        const next = lacking();
        const waitMs = notBeforeMs - clock.monotonicMs();
        if (room === "none") await nap(RETRY_MS);
        else if (next === undefined) {
          for (const member of ready) await members.keepShell(member, { signal: stop.signal });
          await untilWanted();
        } else if (waitMs > 0) await nap(Math.min(waitMs, LOOK_MS));
        else {
          current = makeOne(next.base, next.kind);
          await current;
          await nap(MS_PER_SECOND / options.refillPerSecond);
        }
      } catch (err) {
        if (!isOver()) log.warn({ err }, "no session could be made ready");
        await nap(RETRY_MS);
      }
    }
  };
  stop.signal.addEventListener("abort", () => {
    wake();
  });
  current = takeUpAll();
  const refilling = isOff ? current : current.then(refill);

  /** One that lives, out of the pool. */
  const take = async (base: BaseRef, kind: WarmKind): Promise<WarmMember | undefined> => {
    for (;;) {
      const [member] = ofKind(base, kind);
      if (member === undefined) return undefined;
      ready = ready.filter((other) => other !== member);
      // Not by the caller's signal: what has left the pool is to come to a caller, or to be dropped.
      if (await members.isAlive(member, { signal: stop.signal })) return member;
      dropBehind(member);
    }
  };
  const become = async (blueprint: Blueprint, receiptOf: ReceiptOf, call: Call): Promise<SessionRow | undefined> => {
    const begun = releases;
    const member = await take(blueprint.base, kindFor(blueprint.networkPolicy));
    if (member === undefined) return undefined;
    let made: SessionRow | undefined;
    try {
      made = await members.become(member, { blueprint, receiptOf, isWanted: () => releases === begun }, call);
    } finally {
      if (made === undefined) dropBehind(member);
      else marks.add(made, member);
    }
    return made;
  };

  return {
    provide: async (blueprint, receiptOf, call) => {
      if (isOff || blueprint.origin.kind !== "base") return undefined;
      want(blueprint.base, options.refillDelayMs);
      const made = await become(blueprint, receiptOf, call);
      if (made === undefined) misses += 1;
      else hits += 1;
      return made;
    },
    expect: (base) => {
      want(base, 0);
    },
    release: async (base) => {
      releases += 1;
      if (base === undefined) {
        await dropWhere(() => true);
        return;
      }
      wanted.delete(keyOf(base));
      const gone = dropWhere((member) => isOf(member, base));
      await Promise.all([gone, current.catch(() => undefined), ...leaving]);
    },
    stats: () => ({ ready: ready.length, hits, misses }),
    abandon: async () => {
      marks.abandon();
      stop.abort();
      await refilling;
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await refilling;
      const call = { signal: AbortSignal.timeout(FREEZE_TIMEOUT_MS) };
      const freezing = ready.map(async (member) => {
        await members.freeze(member, call).catch((err: unknown) => {
          log.warn({ err, token: member.token }, "a warm session runs on while the service is down");
        });
      });
      await Promise.all([marks[Symbol.asyncDispose](), ...freezing, ...leaving]);
    },
  };
}

const keyOf = ({ name, digest }: BaseRef): string => `${name}@${digest}`;
