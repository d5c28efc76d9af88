import { type Clock, randomToken, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import { untilAborted } from "../async/until-aborted.ts";
import { DENY_ALL, needsNetwork } from "../network-policy/policy.ts";
import type { Network } from "../network/network.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import type { HeadRef, Storage } from "../storage/storage.ts";
import type { RecentMounts } from "./recent-mounts.ts";

/** Container ids are of one fixed length: runsc matches ids by prefix. */
const CONTAINER_ID_LENGTH = 16;

interface Call {
  readonly signal: AbortSignal;
}

/**
 * The resident containers of sessions: booted lazily, one per session, found again after a restart. The id is durable
 * before the boot, so no container is ever without an owner.
 */
export interface Containers {
  newId(): string;
  /** The id of a container that runs on the session's head. One that died is replaced under a new generation. */
  ensure(session: Session, call: Call): Promise<string>;
  /**
   * Boots a container on a head that is not live yet, under an id that the caller has made durable. A head that the
   * caller knows to be mounted comes with its path. `always`: in a network also where the policy allows nothing yet.
   */
  boot(
    session: Session,
    at: {
      readonly head: HeadRef;
      readonly id: string;
      readonly path?: string;
      readonly network?: "always";
      /** See `ContainerSpec`. */
      readonly awaited?: "yes";
    },
    call: Call,
  ): Promise<void>;
  /** Takes over a container that the caller booted and committed. */
  adopt(session: Session, id: string): void;
  /** Says that the container did not answer; the next `ensure` looks again. */
  suspect(session: Session): void;
  /** The container that is to be up now, undefined where there is none or an operation is changing that. */
  resident(session: Session): string | undefined;
  /**
   * Says that the container has died: what is left of it is taken away, and the session goes on under a new generation. The
   * next `ensure` boots another on the same files.
   */
  lose(session: Session, id: string, call: Call): Promise<void>;
  /**
   * Ends what the session no longer works on, a moment later: the caller's next command comes first, and ending a sandbox
   * keeps the processors busy. Whoever needs it gone has it done at once by `settled`.
   */
  retire(session: Session, end: () => Promise<void>): void;
  /** Waits for a boot in progress, and for what is being retired, however they end. */
  settled(session: Session): Promise<void>;
  /** Waits until it is settled, then ends the session's container if there is one. */
  end(session: Session, call: Call): Promise<void>;
}

export function createContainers(deps: {
  readonly storage: Storage;
  readonly runtime: Runtime;
  /** Containers take their networks with them when they end. */
  readonly network: Network;
  /** Heads that need no look before the first boot; absent, all do. */
  readonly recentMounts?: Pick<RecentMounts, "take">;
  readonly clock: Clock;
  readonly log: Logger;
}): Containers {
  const { storage, runtime, network, log } = deps;
  const running = new WeakMap<Session, string>();
  const ensuring = new WeakMap<Session, Promise<string>>();
  const losing = new WeakMap<Session, Promise<void>>();
  const retiring = new WeakMap<Session, { readonly done: Promise<void>; hurry(): void }>();
  const newId = (): string => randomToken(CONTAINER_ID_LENGTH);

  const boot: Containers["boot"] = async (session, at, call) => {
    const { head, id, path: mounted, network: wanted, awaited } = at;
    const path = mounted ?? deps.recentMounts?.take(head) ?? (await storage.mountHead(head, call)).path;
    const { limits, networkPolicy } = session.row;
    const attached =
      wanted === "always" || needsNetwork(networkPolicy)
        ? { network: await network.attach(id, networkPolicy ?? DENY_ALL, call) }
        : {};
    await runtime.start(
      { id, rootPath: path, hostname: "turnbox", limits, ...attached, ...(awaited && { awaited }) },
      call,
    );
  };

  /** The recorded container if it answers; a frozen one is thawed, because the service froze it when it stopped. */
  const recorded = async (session: Session, call: Call): Promise<string | null> => {
    const id = session.row.container;
    if (id === null) return null;
    const liveness = await runtime.liveness(id, call);
    if (liveness === "paused") await runtime.resume(id, call);
    if (liveness !== "gone") return id;
    log.warn({ sessionId: session.row.id, container: id }, "container is gone");
    await runtime.stop(id, call);
    return null;
  };

  const find = async (session: Session): Promise<string> => {
    const call = { signal: session.lifetime.signal };
    await session.returned;
    const { head } = session;
    const alive = await recorded(session, call);
    if (alive !== null) return alive;
    const id = newId();
    await session.commit((row) => {
      if (row.headGeneration !== head.generation) {
        throw new SandboxError("GENERATION_CHANGED", "the session was rolled back meanwhile", {
          currentGeneration: row.generation,
        });
      }
      return { ...row, container: id, generation: row.generation + (row.container === null ? 0 : 1) };
    });
    try {
      await boot(session, { head, id, awaited: "yes" }, call);
    } catch (thrown) {
      // Nothing ran in it, so the next attempt needs no new generation; but its id is kept until it is surely gone.
      await runtime.stop(id, { signal: AbortSignal.timeout(STOP_TIMEOUT_MS) });
      await session.commit((row) => (row.container === id ? { ...row, container: null } : row));
      throw thrown;
    }
    return id;
  };

  const resident = (session: Session): string | undefined => {
    const { phase, container } = session.row;
    const isSettled = !session.gate.isClosed && !ensuring.has(session) && !losing.has(session);
    return isSettled && (phase.kind === "active" || phase.kind === "paused") ? (container ?? undefined) : undefined;
  };

  /** Ended before it is given up: where only its gofer has died, the rest of it still writes to the session's files. */
  const takeAway = async (session: Session, id: string, call: Call): Promise<void> => {
    if (running.get(session) === id) running.delete(session);
    await runtime.stop(id, call);
    await session.commit((row) =>
      row.container === id ? { ...row, container: null, generation: row.generation + 1 } : row,
    );
  };

  const settled = async (session: Session): Promise<void> => {
    retiring.get(session)?.hurry();
    await Promise.allSettled([ensuring.get(session), losing.get(session), retiring.get(session)?.done]);
  };
  const retire: Containers["retire"] = (session, end) => {
    const soon = new AbortController();
    const rest = deps.clock.sleep(RETIRE_AFTER_MS, { signal: soon.signal }).catch(() => undefined);
    const hurry = (): void => {
      soon.abort();
    };
    retiring.set(session, { done: rest.then(end), hurry });
  };

  return {
    newId,
    boot,
    ensure: async (session, call) => {
      const known = running.get(session);
      if (known !== undefined && known === session.row.container) return known;
      let finding = ensuring.get(session);
      if (finding === undefined) {
        finding = find(session).then((id) => {
          running.set(session, id);
          return id;
        });
        ensuring.set(session, finding);
        const done = (): void => void ensuring.delete(session);
        finding.then(done, done);
      }
      return await untilAborted(finding, call.signal);
    },
    adopt: (session, id) => void running.set(session, id),
    suspect: (session) => void running.delete(session),
    resident,
    lose: async (session, id, call) => {
      if (resident(session) !== id) return;
      const work = takeAway(session, id, call).finally(() => void losing.delete(session));
      losing.set(session, work);
      await work;
    },
    retire,
    settled,
    end: async (session, call) => {
      await settled(session);
      running.delete(session);
      const id = session.row.container;
      if (id !== null) await runtime.stop(id, call);
    },
  };
}

const STOP_TIMEOUT_MS = 30_000;
const RETIRE_AFTER_MS = 300;
