import { type Clock, mapConcurrent } from "@turnbox/core";
import type { Logger } from "pino";
import type { Blueprint } from "../lifecycle/make.ts";
import type { SessionRow } from "../record/row.ts";
import type { BaseRef, Storage } from "../storage/storage.ts";
import { DeferredMarks } from "./deferred-marks.ts";
import { Demand, keyOf } from "./demand.ts";
import { MemberLifecycle, type MemberLifecycleParts, type ReceiptOf } from "./member-lifecycle.ts";
import { isOf, kindFor, kindOf, WARM_KINDS, type WarmKind, type WarmMember } from "./member.ts";
import { ReadyMembers } from "./ready-members.ts";

export interface WarmPoolOptions {
  /** How many of each kind are kept ready for each template that is in use; 0 makes none. */
  readonly sizes: Readonly<Record<WarmKind, number>>;
  /** How long the pool waits after a create before it makes another one, so that it does not slow a burst of creates. */
  readonly refillDelayMs: number;
  /** Most that are made in a second. */
  readonly refillPerSecond: number;
  /** Those that an earlier service left ready. */
  readonly left: readonly WarmMember[];
}

export interface WarmPoolParts extends MemberLifecycleParts {
  readonly storage: Pick<Storage, "mountHead" | "boundSession" | "markSession">;
  /** Whether there is memory and space to spare. */
  readonly hasRoom: () => Promise<boolean>;
  readonly clock: Clock;
}

export interface WarmStats {
  readonly ready: number;
  readonly hits: number;
  readonly misses: number;
}

interface Call {
  readonly signal: AbortSignal;
}

const MAKE_TIMEOUT_MS = 60_000;
const FREEZE_TIMEOUT_MS = 3_000;
const RETRY_MS = 10_000;
const MS_PER_SECOND = 1000;
/** How many members that an earlier service left are taken up at once. */
const LANES = 4;

/**
 * Sessions that are made before a create asks for one: files cloned, container booted, shells waiting. They have no name
 * and no tenant, and have run no command of a caller; a create gives one its name and all that it asked for. On record
 * they are sessions that are being made and are ready. A restart takes up again those that no create has begun to use, and
 * removes the others.
 */
export class WarmPool implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #runtime: WarmPoolParts["runtime"];
  readonly #hasRoom: WarmPoolParts["hasRoom"];
  readonly #options: WarmPoolOptions;
  readonly #isOff: boolean;
  readonly #members: MemberLifecycle;
  readonly #ready: ReadyMembers;
  readonly #demand: Demand;
  readonly #marks: DeferredMarks;
  readonly #stop = new AbortController();
  readonly #untilStop: Call = { signal: this.#stop.signal };
  /** What is being made or taken up. */
  #current: Promise<void>;
  readonly #filling: Promise<void>;
  #hits = 0;
  #misses = 0;

  /** Takes up what an earlier service left, and fills the pool from then on. */
  constructor(parts: WarmPoolParts, options: WarmPoolOptions) {
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#runtime = parts.runtime;
    this.#hasRoom = parts.hasRoom;
    this.#options = options;
    this.#isOff = WARM_KINDS.every((kind) => options.sizes[kind] === 0);
    this.#members = new MemberLifecycle(parts);
    this.#ready = new ReadyMembers(this.#members, parts.log);
    this.#demand = new Demand(parts.clock);
    this.#marks = new DeferredMarks(parts);
    this.#current = this.#takeUpAll();
    this.#filling = this.#isOff ? this.#current : this.#current.then(() => this.#fill());
  }

  /**
   * Makes a member into this session, usable with one commit. Undefined if no member is ready, or if the one that was could
   * not be given what the session wants; that one is removed.
   */
  async provide(wanted: Blueprint, receiptOf: ReceiptOf, call: Call): Promise<SessionRow | undefined> {
    if (this.#isOff || wanted.origin.kind !== "base") return undefined;
    this.#demand.add(wanted.base, this.#options.refillDelayMs);
    const made = await this.#handOver(wanted, receiptOf, call);
    if (made === undefined) this.#misses += 1;
    else this.#hits += 1;
    return made;
  }

  /** Says that sessions of this template will be asked for. */
  expect(base: BaseRef): void {
    this.#demand.add(base, 0);
  }

  /** Ends the members of a template, or all: they depend on files that are to go, or have gone. */
  async release(base?: BaseRef): Promise<void> {
    if (base === undefined) {
      await this.#ready.release(() => true);
      return;
    }
    this.#demand.remove(base);
    const gone = this.#ready.release((member) => isOf(member, base));
    await Promise.all([gone, this.#current.catch(() => undefined), this.#ready.dropped()]);
  }

  stats(): WarmStats {
    return { ready: this.#ready.all.length, hits: this.#hits, misses: this.#misses };
  }

  /** Makes no more, and leaves those that are ready as they are: what a crash does. */
  async abandon(): Promise<void> {
    this.#marks.abandon();
    this.#stop.abort();
    await this.#filling;
  }

  /** Leaves those that are ready frozen, for the next service. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#filling;
    const call = { signal: AbortSignal.timeout(FREEZE_TIMEOUT_MS) };
    const freezing = this.#ready.all.map(async (member) => {
      await this.#members.freeze(member, call).catch((err: unknown) => {
        this.#log.warn({ err, token: member.token }, "warm session not frozen, it runs while the service is down");
      });
    });
    await Promise.all([this.#marks[Symbol.asyncDispose](), ...freezing, this.#ready.dropped()]);
  }

  async #handOver(blueprint: Blueprint, receiptOf: ReceiptOf, call: Call): Promise<SessionRow | undefined> {
    const begun = this.#ready.releases;
    const isWanted = (): boolean => this.#ready.releases === begun;
    // Not by the caller's signal: what has left the pool is handed over, or dropped.
    const member = await this.#ready.take(blueprint.base, kindFor(blueprint.networkPolicy), this.#untilStop);
    if (member === undefined) return undefined;
    let made: SessionRow | undefined;
    try {
      made = await this.#members.handOver(member, { blueprint, receiptOf, isWanted }, call);
    } finally {
      if (made === undefined) this.#ready.dropBehind(member);
      else this.#marks.add(made, member);
    }
    return made;
  }

  #isOver(): boolean {
    return this.#stop.signal.aborted;
  }

  #makeCall(): Call {
    return { signal: AbortSignal.any([this.#stop.signal, AbortSignal.timeout(MAKE_TIMEOUT_MS)]) };
  }

  /** Takes up what an earlier service left, up to the size of each kind, and drops the rest. */
  async #takeUpAll(): Promise<void> {
    const begun = this.#ready.releases;
    const counts = new Map<string, number>();
    const isSurplus = (member: WarmMember): boolean => {
      const key = `${kindOf(member)} ${keyOf(member.base)}`;
      const count = (counts.get(key) ?? 0) + 1;
      counts.set(key, count);
      return count > this.#options.sizes[kindOf(member)];
    };
    const { left } = this.#options;
    const { kept = [], surplus = [] } = Object.groupBy(left, (member) => (isSurplus(member) ? "surplus" : "kept"));
    await mapConcurrent(kept, LANES, async (member) => {
      if (!this.#isOver()) await this.#takeUp(member, begun);
    });
    await mapConcurrent(surplus, LANES, (member) => this.#ready.drop(member));
  }

  async #takeUp(member: WarmMember, begun: number): Promise<void> {
    const state = await this.#members.takeUp(member, this.#makeCall()).catch((err: unknown) => {
      if (!this.#isOver()) this.#log.warn({ err, token: member.token }, "warm session not taken up again");
      return "stale" as const;
    });
    // What a stop has cut off is taken up by the next service.
    if (this.#isOver()) return;
    if (state === "stale") {
      await this.#ready.drop(member);
      return;
    }
    if (this.#ready.releases === begun) this.#demand.add(member.base, 0);
    await this.#ready.join(member, begun);
  }

  async #fill(): Promise<void> {
    while (!this.#isOver()) {
      try {
        await this.#fillOnce();
      } catch (err) {
        if (!this.#isOver()) this.#log.warn({ err }, "warm session not made");
        await this.#sleep(RETRY_MS);
      }
    }
  }

  async #fillOnce(): Promise<void> {
    const hasRoom = await this.#dropUnneeded();
    const next = this.#lacking();
    const waitMs = this.#demand.waitMs();
    if (!hasRoom) await this.#sleep(RETRY_MS);
    else if (next === undefined) {
      for (const member of this.#ready.all) await this.#members.keepShell(member, this.#untilStop);
      await this.#demand.untilChanged(this.#stop.signal);
    } else if (waitMs > 0) await this.#sleep(waitMs);
    else {
      this.#current = this.#makeOne(next.base, next.kind);
      await this.#current;
      await this.#sleep(MS_PER_SECOND / this.#options.refillPerSecond);
    }
  }

  /**
   * Drops members of templates that are not in use, all if there is no room for them, and those whose sandbox has died.
   * Returns whether there is room.
   */
  async #dropUnneeded(): Promise<boolean> {
    const hasRoom = await this.#hasRoom();
    await this.#ready.dropMatching(({ base }) => !hasRoom || !this.#demand.has(base));
    const containers = this.#ready.all.map(({ container }) => container);
    const dead = new Set(await this.#runtime.findDead(containers, this.#untilStop));
    await this.#ready.dropMatching(({ container }) => dead.has(container));
    return hasRoom;
  }

  /** What is lacking: first of those without a network, and then of the template used last. */
  #lacking(): { readonly base: BaseRef; readonly kind: WarmKind } | undefined {
    const bases = this.#demand.latestFirst();
    const pairs = WARM_KINDS.flatMap((kind) => bases.map((base) => ({ base, kind })));
    return pairs.find(({ base, kind }) => this.#ready.ofKind(base, kind).length < this.#options.sizes[kind]);
  }

  async #makeOne(base: BaseRef, kind: WarmKind): Promise<void> {
    const begun = this.#ready.releases;
    await this.#ready.join(await this.#members.make(base, kind, this.#makeCall()), begun);
  }

  async #sleep(ms: number): Promise<void> {
    await this.#clock.sleep(ms, { signal: this.#stop.signal }).catch(() => undefined);
  }
}
