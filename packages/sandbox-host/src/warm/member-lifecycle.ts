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
  /** Whether what stood ready may still be used. */
  readonly isWanted: () => boolean;
}

/** The life of one session that stands ready: how it comes to be, and what becomes of it. */
export interface MemberLifecycle {
  /** Makes one, ready and on record as such when it answers. Where it fails, nothing of it is left. */
  make(base: BaseRef, kind: WarmKind, call: Call): Promise<WarmMember>;
  /**
   * Looks at one that an earlier service left, thaws it and gives it a shell, as ready as a new one. `stale` where it is not
   * what this service would make, or not whole; it is to be dropped then.
   */
  takeUp(member: WarmMember, call: Call): Promise<"ready" | "stale">;
  isAlive(member: WarmMember, call: Call): Promise<boolean>;
  /** Has a shell wait in it, however long nobody asked for one. */
  keepShell(member: WarmMember, call: Call): Promise<void>;
  /**
   * Makes it into the session, usable with one commit. Before anything is done to it, it is off the record of those that are
   * ready: a crash before the commit has it removed. Undefined where it could not be given what the session wants, or
   * `isWanted` says no before the commit; it is to be dropped then, and where this throws.
   */
  become(member: WarmMember, wanted: WantedSession, call: Call): Promise<SessionRow | undefined>;
  /** Freezes it, for the next service. */
  freeze(member: WarmMember, call: Call): Promise<void>;
  drop(member: WarmMember, call: Call): Promise<void>;
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

export function createMemberLifecycle(deps: MemberLifecycleParts): MemberLifecycle {
  const { records, runtime, network, storage, maker, bootId, crashPoint, log } = deps;
  const { quotaBytes, limits } = deps.defaults;

  const note = async (member: WarmMember, phase: SessionRow["phase"]): Promise<WarmMember> => {
    const noted = { ...member, phase };
    await records.call("noteReadiness", noted);
    return noted;
  };
  const claim = async (member: WarmMember): Promise<void> => {
    await note(member, { kind: "creating" });
  };
  const drop = async (member: WarmMember, call: Call): Promise<void> => {
    await claim(member);
    await runtime.stop(member.container, call);
    await maker.discard(member);
  };
  const keepShell = async ({ container }: WarmMember, call: Call): Promise<void> => {
    await runtime.prewarm?.anticipate(container, deps.prewarmSpec, call);
  };
  // The second look at a container is the cheap one: each is looked at once before it is ready.
  const isAlive = async ({ container }: WarmMember, call: Call): Promise<boolean> =>
    (await runtime.findDead([container], call)).length === 0;
  const boot = async (member: WarmMember, call: Call): Promise<void> => {
    const session = createSession(member, deps);
    const attached = kindOf(member) === "networked" ? ({ network: "always" } as const) : {};
    await deps.containers.boot(session, { head: session.head, id: member.container, ...attached }, call);
  };
  /** Whether it is what this service would make now, and the machine still has all of it. Thaws it. */
  const isWhole = async (member: WarmMember, call: Call): Promise<boolean> => {
    const { base, container, token, headGeneration: generation } = member;
    if (member.quotaBytes !== quotaBytes || !isSameLimits(member.limits, limits)) return false;
    if ((await deps.templates.resolve(base.name, call)).digest !== base.digest) return false;
    await storage.mountHead({ token, generation }, call);
    if ((await runtime.liveness(container, call)) === "paused") await runtime.resume(container, call);
    if ((await runtime.liveness(container, call)) !== "running") return false;
    if (kindOf(member) === "plain") return true;
    if (!network.isAttached(container)) return false;
    await network.update(container, DENY_ALL, call);
    return true;
  };
  /** Gives it what a session wants and what was decided when it was made: limits, network, bound of files. */
  const bind = async (member: WarmMember, wanted: Blueprint, call: Call): Promise<WarmMember> => {
    await claim(member);
    await crashPoint("handover.claimed");
    const { container, token } = member;
    if (!isSameLimits(wanted.limits, member.limits)) await runtime.limit(container, wanted.limits, call);
    if (kindFor(wanted.networkPolicy) === "networked") {
      if (!network.isAttached(container)) throw new SandboxError("SANDBOX_LOST", "the sandbox has lost its network");
      await network.update(container, wanted.networkPolicy ?? DENY_ALL, call);
    }
    const isBoundSo = wanted.quotaBytes === member.quotaBytes;
    const quota = wanted.quotaBytes === null ? {} : { quotaBytes: wanted.quotaBytes };
    const head = isBoundSo ? member : await storage.boundSession({ token, origin: wanted.origin, ...quota }, call);
    await crashPoint("handover.bound");
    return { ...member, refquotaBytes: head.refquotaBytes ?? null };
  };

  return {
    make: async (base, kind, call) => {
      const made = await maker.make({ ...warmBlueprint(base, kind), quotaBytes, limits }, call);
      const member = { ...made, container: deps.containers.newId() };
      try {
        // On record before the boot, as always: whoever finds the container knows whose it is.
        await records.call("commitSessions", { sessions: [member] });
        await boot(member, call);
        await keepShell(member, call);
        if (!(await isAlive(member, call))) throw new SandboxError("SANDBOX_LOST", "the sandbox died when it was made");
        return await note(member, { kind: "creating", readyIn: bootId });
      } catch (thrown) {
        await drop(member, { signal: AbortSignal.timeout(DROP_TIMEOUT_MS) }).catch((err: unknown) => {
          log.warn({ err, token: member.token }, "a session that was being made ready goes at the next start");
        });
        throw thrown;
      }
    },
    takeUp: async (member, call) => {
      if (!(await isWhole(member, call))) return "stale";
      await runtime.quiesce(member.container, call);
      await keepShell(member, call);
      return (await isAlive(member, call)) ? "ready" : "stale";
    },
    isAlive,
    keepShell,
    become: async (member, wanted, call) => {
      const bound = await bind(member, wanted.blueprint, call).catch((err: unknown) => {
        log.warn({ err, token: member.token }, "a warm session could not become the one that was wanted");
        return undefined;
      });
      if (bound === undefined || !wanted.isWanted()) return undefined;
      const made = await maker.handOver(bound, wanted.blueprint, wanted.receiptOf);
      const session = deps.registry.find(made.id);
      if (session !== undefined) deps.containers.adopt(session, member.container);
      await crashPoint("handover.committed");
      return made;
    },
    freeze: async ({ container }, call) => {
      await runtime.pause(container, call);
    },
    drop,
  };
}

const DROP_TIMEOUT_MS = 15_000;
