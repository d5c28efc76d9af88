import { isDeepStrictEqual } from "node:util";
import type { Clock } from "@turnbox/core";
import type { Logger } from "pino";
import { needsNetwork } from "../network/policy.ts";
import type { Records } from "../record/records.ts";
import type { ReceiptRow, SessionRow } from "../record/row.ts";
import type { ContainerLimits, ExecSpec, Runtime } from "../runtime/runtime.ts";
import type { BaseRef, Storage } from "../storage/storage.ts";
import type { Containers } from "./container.ts";
import type { SessionEvents } from "./events.ts";
import { createLateMarks } from "./late-marks.ts";
import type { Blueprint, Maker } from "./make.ts";
import type { Registry } from "./registry.ts";
import { createSession } from "./session.ts";
import { warmBlueprint } from "./warm-blueprint.ts";

export interface WarmPoolOptions {
  /** How many stand ready for each template that is in use; 0 makes none. */
  readonly size: number;
  /** How long the pool waits after a create before it makes another one: creates of a burst are not held up by it. */
  readonly refillDelayMs: number;
  /** Most that are made in a second. */
  readonly refillPerSecond: number;
}

/**
 * Sessions that stand ready before anybody asks for them: files cloned, container booted, shells waiting. They have no
 * name, no tenant and have run nothing of anybody's; a create gives one its name and all that it asked for. On record
 * they are sessions that are being made, so that a restart takes those away that a service has left.
 */
export interface WarmPool extends AsyncDisposable {
  /** Makes no more, and leaves those that are ready as they are: what a crash does. */
  abandon(): Promise<void>;
  /**
   * Makes one of them into this session, usable with one commit. Undefined where none is ready, or none could be made
   * into it: bounds of files and networks are given when a session is made, and not later.
   */
  provide(wanted: Blueprint, receiptOf: ReceiptOf, call: Call): Promise<SessionRow | undefined>;
  /** Says that sessions of this template will be asked for. */
  expect(base: BaseRef): void;
  /** Ends those of a template, or all: they stand on files that are to go, or have gone. */
  release(base?: BaseRef): Promise<void>;
  stats(): WarmStats;
  [Symbol.asyncDispose](): Promise<void>;
}

type ReceiptOf = (row: SessionRow) => ReceiptRow | undefined;

interface Call {
  readonly signal: AbortSignal;
}

export interface WarmStats {
  readonly ready: number;
  readonly hits: number;
  readonly misses: number;
}

type Ready = SessionRow & { readonly container: string };

/** Templates beyond these, the longest unused first, have none standing ready. */
const MAX_TEMPLATES = 4;
const MAKE_TIMEOUT_MS = 60_000;
const DROP_TIMEOUT_MS = 15_000;
const RETRY_MS = 10_000;
/** How often a full pool looks whether there is still room for it. */
const LOOK_MS = 10_000;
const MS_PER_SECOND = 1000;

export interface WarmPoolParts {
  readonly maker: Pick<Maker, "make" | "handOver" | "discard">;
  readonly registry: Pick<Registry, "find">;
  readonly records: Records;
  readonly storage: Pick<Storage, "markSession">;
  readonly events: SessionEvents;
  readonly containers: Containers;
  readonly runtime: Runtime;
  /** What sessions are bound by unless they ask for something else. */
  readonly defaults: { readonly quotaBytes: number | null; readonly limits: ContainerLimits };
  /** The call that most sessions begin with. */
  readonly firstCall: ExecSpec;
  /** Whether there is memory and space to spare. */
  readonly hasRoom: () => Promise<boolean>;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createWarmPool(deps: WarmPoolParts, options: WarmPoolOptions): WarmPool {
  const { runtime, clock, log } = deps;
  const ready = new Map<string, Ready[]>();
  /** In the order of their last use. */
  const wanted = new Map<string, BaseRef>();
  const stop = new AbortController();
  const isOver = (): boolean => stop.signal.aborted;
  const marks = createLateMarks(deps);
  let wake = (): void => undefined;
  /** Until then none is made, because of a create. Creates that follow do not put it off further. */
  let notBeforeMs = 0;
  /** Raised whenever what stands ready, or is being made, is not to be used. */
  let releases = 0;
  /** The one that is being made. */
  let current: Promise<void> = Promise.resolve();
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
  const drop = async (row: Ready): Promise<void> => {
    const call = { signal: AbortSignal.timeout(DROP_TIMEOUT_MS) };
    await runtime.stop(row.container, call);
    await deps.maker.discard(row);
  };
  const tellLeft =
    ({ token }: Ready) =>
    (err: unknown): void => {
      log.warn({ err, token }, "a session that stood ready is taken away at the next start");
    };
  const dropAll = async (keys: readonly string[]): Promise<void> => {
    const rows = keys.flatMap((key) => ready.get(key) ?? []);
    for (const key of keys) ready.delete(key);
    await Promise.all(rows.map((row) => drop(row).catch(tellLeft(row))));
  };

  const make = async (base: BaseRef): Promise<Ready> => {
    const call = { signal: AbortSignal.any([stop.signal, AbortSignal.timeout(MAKE_TIMEOUT_MS)]) };
    const made = await deps.maker.make({ ...warmBlueprint(base), ...deps.defaults }, call);
    const row = { ...made, container: deps.containers.newId() };
    try {
      // On record before the boot, as always: whoever finds the container knows whose it is.
      await deps.records.call("commitSessions", { sessions: [row] });
      const session = createSession(row, deps);
      await deps.containers.boot(session, { head: session.head, id: row.container }, call);
      await runtime.anticipate(row.container, deps.firstCall, call);
      // A create looks whether it lives; the second look at a container is the cheap one.
      await runtime.findDead([row.container], call);
      return row;
    } catch (thrown) {
      await drop(row).catch(tellLeft(row));
      throw thrown;
    }
  };

  /** Of the templates that lack one, the one used last. */
  const lacking = (): BaseRef | undefined =>
    [...wanted.values()].reverse().find((base) => (ready.get(keyOf(base))?.length ?? 0) < options.size);

  const refillOne = async (base: BaseRef): Promise<void> => {
    const begun = releases;
    const row = await make(base);
    if (isOver() || releases !== begun) await drop(row).catch(tellLeft(row));
    else ready.set(keyOf(base), [...(ready.get(keyOf(base)) ?? []), row]);
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
    const containers = [...ready.values()].flatMap((rows) => rows.map(({ container }) => container));
    const dead = new Set(await runtime.findDead(containers, { signal: stop.signal }));
    if (dead.size === 0) return;
    const gone: Ready[] = [];
    for (const [key, rows] of ready) {
      gone.push(...rows.filter(({ container }) => dead.has(container)));
      ready.set(
        key,
        rows.filter(({ container }) => !dead.has(container)),
      );
    }
    await Promise.all(gone.map((row) => drop(row).catch(tellLeft(row))));
  };
  /** A shell that waits for nobody ends after a while; those of sessions that stand ready are waited for. */
  const keepShells = async (): Promise<void> => {
    for (const { container } of [...ready.values()].flat())
      await runtime.anticipate(container, deps.firstCall, { signal: stop.signal });
  };
  /** Takes away what is of templates that nobody uses any more, or everything where there is no room for it. */
  const giveWay = async (): Promise<"room" | "none"> => {
    const hasRoom = await deps.hasRoom();
    await dropAll([...ready.keys()].filter((key) => !hasRoom || !wanted.has(key)));
    await dropDead();
    return hasRoom ? "room" : "none";
  };
  const refill = async (): Promise<void> => {
    while (!isOver()) {
      try {
        const room = await giveWay();
        const base = lacking();
        const waitMs = notBeforeMs - clock.monotonicMs();
        if (room === "none") await nap(RETRY_MS);
        else if (base === undefined) {
          await keepShells();
          await untilWanted();
        } else if (waitMs > 0) await nap(Math.min(waitMs, LOOK_MS));
        else {
          current = refillOne(base);
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
  const refilling = options.size > 0 ? refill() : Promise.resolve();

  /** One that lives, out of the pool. */
  const take = async (base: BaseRef, call: Call): Promise<Ready | undefined> => {
    for (;;) {
      const row = ready.get(keyOf(base))?.shift();
      if (row === undefined) return undefined;
      if ((await runtime.findDead([row.container], call)).length === 0) return row;
      void drop(row).catch(tellLeft(row));
    }
  };
  const become = async (row: Ready, blueprint: Blueprint, receiptOf: ReceiptOf, call: Call): Promise<SessionRow> => {
    const isOwn = !isDeepStrictEqual(blueprint.limits, deps.defaults.limits);
    if (isOwn) await runtime.limit(row.container, blueprint.limits, call);
    return await deps.maker.handOver(row, blueprint, receiptOf);
  };

  return {
    provide: async (blueprint, receiptOf, call) => {
      const { base, origin, quotaBytes, networkPolicy } = blueprint;
      if (options.size === 0 || origin.kind !== "base") return undefined;
      want(base, options.refillDelayMs);
      const fits = quotaBytes === deps.defaults.quotaBytes && !needsNetwork(networkPolicy);
      const row = fits ? await take(base, call) : undefined;
      if (row === undefined) {
        misses += 1;
        return undefined;
      }
      try {
        const made = await become(row, blueprint, receiptOf, call);
        const session = deps.registry.find(made.id);
        if (session !== undefined) deps.containers.adopt(session, row.container);
        marks.add(made, row);
        hits += 1;
        return made;
      } catch (thrown) {
        await drop(row).catch(tellLeft(row));
        throw thrown;
      }
    },
    expect: (base) => {
      want(base, 0);
    },
    release: async (base) => {
      releases += 1;
      if (base === undefined) {
        await dropAll([...ready.keys()]);
        return;
      }
      wanted.delete(keyOf(base));
      await Promise.all([dropAll([keyOf(base)]), current.catch(() => undefined)]);
    },
    stats: () => ({ ready: [...ready.values()].reduce((sum, rows) => sum + rows.length, 0), hits, misses }),
    abandon: async () => {
      marks.abandon();
      stop.abort();
      await refilling;
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await refilling;
      await dropAll([...ready.keys()]);
      await marks[Symbol.asyncDispose]();
    },
  };
}

const keyOf = ({ name, digest }: BaseRef): string => `${name}@${digest}`;
