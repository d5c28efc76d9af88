import { SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Containers } from "../container/container.ts";
import type { Blueprint, Maker } from "../lifecycle/make.ts";
import { DENY_ALL } from "../network-policy/policy.ts";
import type { Network } from "../network/network.ts";
import type { Records } from "../record/records.ts";
import type { ReceiptRow, SessionRow } from "../record/row.ts";
import type { ContainerLimits, ExecSpec, Runtime } from "../runtime/runtime.ts";
import type { CrashPointHook } from "../session/crash-point.ts";
import type { SessionEvents } from "../session/events.ts";
import type { Registry } from "../session/registry.ts";
import { createSession } from "../session/session.ts";
import type { BaseRef, Storage } from "../storage/storage.ts";
import type { Templates } from "../template/templates.ts";
import { isSameLimits, kindFor, kindOf, warmBlueprint, type WarmKind, type WarmMember } from "./member.ts";

interface Call {
  readonly signal: AbortSignal;
}

export type ReceiptOf = (row: SessionRow) => ReceiptRow | undefined;

/** What a member is to become. */
export interface WantedSession {
  readonly blueprint: Blueprint;
  readonly receiptOf: ReceiptOf;
  /** Whether the member may still be used. */
  readonly isWanted: () => boolean;
}

export interface MemberLifecycleParts {
  readonly maker: Pick<Maker, "make" | "handOver" | "discard">;
  readonly registry: Pick<Registry, "find">;
  readonly records: Records;
  readonly storage: Pick<Storage, "mountHead" | "boundSession">;
  readonly events: SessionEvents;
  readonly containers: Containers;
  readonly runtime: Runtime;
  readonly network: Network;
  readonly templates: Pick<Templates, "resolve">;
  /** What sessions are bound by unless they ask for something else. */
  readonly defaults: { readonly quotaBytes: number | null; readonly limits: ContainerLimits };
  /** The call that most sessions begin with. */
  readonly prewarmSpec: ExecSpec;
  /** Which boot of the machine this is. */
  readonly bootId: string;
  readonly crashPoint: CrashPointHook;
  readonly log: Logger;
}

const DROP_TIMEOUT_MS = 15_000;

/** The life of one warm session: how it is made, taken up after a restart, handed over, and dropped. */
export class MemberLifecycle {
  readonly #parts: MemberLifecycleParts;

  constructor(parts: MemberLifecycleParts) {
    this.#parts = parts;
  }

  /** Makes a member, ready and on record as such when this returns. If it fails, nothing of it is left. */
  async make(base: BaseRef, kind: WarmKind, call: Call): Promise<WarmMember> {
    const { maker, containers, records, defaults, bootId, log } = this.#parts;
    const { quotaBytes, limits } = defaults;
    const made = await maker.make({ ...warmBlueprint(base, kind), quotaBytes, limits }, call);
    const member = { ...made, container: containers.newId() };
    try {
      // On record before the boot, so that a container that a start finds has an owner.
      await records.call("commitSessions", { sessions: [member] });
      await this.#boot(member, call);
      await this.keepShell(member, call);
      if (!(await this.isAlive(member, call))) {
        throw new SandboxError("SANDBOX_LOST", "the sandbox died when it was made");
      }
      return await this.#note(member, { kind: "creating", readyIn: bootId });
    } catch (thrown) {
      await this.drop(member, { signal: AbortSignal.timeout(DROP_TIMEOUT_MS) }).catch((err: unknown) => {
        log.warn({ err, token: member.token }, "half-made warm session not removed, the next start removes it");
      });
      throw thrown;
    }
  }

  /**
   * Checks a member that an earlier service left, thaws it and gives it a shell, so that it is as ready as a new one. Returns
   * `stale` if it is not what this service would make, or not whole; it is to be dropped then.
   */
  async takeUp(member: WarmMember, call: Call): Promise<"ready" | "stale"> {
    if (!(await this.#isWhole(member, call))) return "stale";
    await this.#parts.runtime.quiesce(member.container, call);
    await this.keepShell(member, call);
    return (await this.isAlive(member, call)) ? "ready" : "stale";
  }

  /** Asks the cheap question: each container was examined once before its member became ready. */
  async isAlive({ container }: WarmMember, call: Call): Promise<boolean> {
    return (await this.#parts.runtime.findDead([container], call)).length === 0;
  }

  /** Keeps a shell waiting in it, however long no create comes. */
  async keepShell({ container }: WarmMember, call: Call): Promise<void> {
    await this.#parts.runtime.prewarm?.anticipate(container, this.#parts.prewarmSpec, call);
  }

  /**
   * Makes it into the session, usable with one commit. Before anything is done to it, it is taken off the record of those
   * that are ready: after a crash before the commit, the start removes it. Returns undefined if it could not be given what
   * the session wants, or if `isWanted` says no before the commit; it is to be dropped then, and if this throws.
   */
  async handOver(member: WarmMember, wanted: WantedSession, call: Call): Promise<SessionRow | undefined> {
    const { maker, registry, containers, crashPoint, log } = this.#parts;
    const bound = await this.#bind(member, wanted.blueprint, call).catch((err: unknown) => {
      log.warn({ err, token: member.token }, "warm session could not be made into the wanted one");
      return undefined;
    });
    if (bound === undefined || !wanted.isWanted()) return undefined;
    const made = await maker.handOver(bound, wanted.blueprint, wanted.receiptOf);
    const session = registry.find(made.id);
    if (session !== undefined) containers.adopt(session, member.container);
    await crashPoint("handover.committed");
    return made;
  }

  /** Freezes it, for the next service. */
  async freeze({ container }: WarmMember, call: Call): Promise<void> {
    await this.#parts.runtime.pause(container, call);
  }

  async drop(member: WarmMember, call: Call): Promise<void> {
    await this.#claim(member);
    await this.#parts.runtime.stop(member.container, call);
    await this.#parts.maker.discard(member);
  }

  async #note(member: WarmMember, phase: SessionRow["phase"]): Promise<WarmMember> {
    const noted = { ...member, phase };
    await this.#parts.records.call("noteReadiness", noted);
    return noted;
  }

  async #claim(member: WarmMember): Promise<void> {
    await this.#note(member, { kind: "creating" });
  }

  async #boot(member: WarmMember, call: Call): Promise<void> {
    const session = createSession(member, this.#parts);
    const attached = kindOf(member) === "networked" ? ({ network: "always" } as const) : {};
    await this.#parts.containers.boot(session, { head: session.head, id: member.container, ...attached }, call);
  }

  /** Whether it is what this service would make now, and the machine still has all of it. Thaws it. */
  async #isWhole(member: WarmMember, call: Call): Promise<boolean> {
    const { storage, runtime, network, templates, defaults } = this.#parts;
    const { base, container, token, headGeneration: generation } = member;
    if (member.quotaBytes !== defaults.quotaBytes || !isSameLimits(member.limits, defaults.limits)) return false;
    if ((await templates.resolve(base.name, call)).digest !== base.digest) return false;
    await storage.mountHead({ token, generation }, call);
    if ((await runtime.liveness(container, call)) === "paused") await runtime.resume(container, call);
    if ((await runtime.liveness(container, call)) !== "running") return false;
    if (kindOf(member) === "plain") return true;
    if (!network.isAttached(container)) return false;
    await network.update(container, DENY_ALL, call);
    return true;
  }

  /** Gives it what the session wants and what was decided when it was made: limits, network, bound of files. */
  async #bind(member: WarmMember, wanted: Blueprint, call: Call): Promise<WarmMember> {
    const { runtime, network, storage, crashPoint } = this.#parts;
    await this.#claim(member);
    await crashPoint("handover.claimed");
    const { container, token } = member;
    if (!isSameLimits(wanted.limits, member.limits)) await runtime.limit(container, wanted.limits, call);
    if (kindFor(wanted.networkPolicy) === "networked") {
      if (!network.isAttached(container)) throw new SandboxError("SANDBOX_LOST", "the sandbox has lost its network");
      await network.update(container, wanted.networkPolicy ?? DENY_ALL, call);
    }
    const isBound = wanted.quotaBytes === member.quotaBytes;
    const quota = wanted.quotaBytes === null ? {} : { quotaBytes: wanted.quotaBytes };
    const head = isBound ? member : await storage.boundSession({ token, origin: wanted.origin, ...quota }, call);
    await crashPoint("handover.bound");
    return { ...member, refquotaBytes: head.refquotaBytes ?? null };
  }
}
