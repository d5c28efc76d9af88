import { type Clock, raceSignal, randomToken, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
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

export interface BootRequest {
  readonly head: HeadRef;
  readonly id: string;
  readonly path?: string;
  readonly network?: "always";
  /** A caller waits for it. */
  readonly isAwaited?: boolean;
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
   * caller knows to be mounted comes with its path. `always`: in a network, even if the policy allows nothing yet.
   */
  boot(session: Session, at: BootRequest, call: Call): Promise<void>;
  /** Takes over a container that the caller booted and committed. */
  adopt(session: Session, id: string): void;
  /** Says that the container did not answer; the next `ensure` checks it again. */
  suspect(session: Session): void;
  /** The container that is to be up now, undefined if there is none or an operation is changing that. */
  resident(session: Session): string | undefined;
  /**
   * Says that the container has died: what is left of it is removed, and the session goes on under a new generation. The
   * next `ensure` boots another on the same files.
   */
  lose(session: Session, id: string, call: Call): Promise<void>;
  /**
   * Ends what the session no longer works on, a moment later: the caller's next command comes first, and ending a sandbox
   * keeps the processors busy. A caller that needs it gone has it done at once by `settled`.
   */
  retire(session: Session, end: () => Promise<void>): void;
  /** Waits for a boot in progress, and for what is being retired, however they end. */
  settled(session: Session): Promise<void>;
  /** Waits until it is settled, then ends the session's container if there is one. */
  end(session: Session, call: Call): Promise<void>;
}

const STOP_TIMEOUT_MS = 30_000;
const RETIRE_AFTER_MS = 300;

export interface ContainersOptions {
  readonly storage: Storage;
  readonly runtime: Runtime;
  /** Containers take their networks with them when they end. */
  readonly network: Network;
  /** Heads that need no look before the first boot; absent, all do. */
  readonly recentMounts?: Pick<RecentMounts, "take">;
  readonly clock: Clock;
  readonly log: Logger;
}

export function createContainers(options: ContainersOptions): Containers {
  return new SessionContainers(options);
}

class SessionContainers implements Containers {
  readonly #options: ContainersOptions;
  readonly #running = new WeakMap<Session, string>();
  readonly #ensuring = new WeakMap<Session, Promise<string>>();
  readonly #losing = new WeakMap<Session, Promise<void>>();
  readonly #retiring = new WeakMap<Session, { readonly done: Promise<void>; hurry(): void }>();

  constructor(options: ContainersOptions) {
    this.#options = options;
  }

  newId(): string {
    return randomToken(CONTAINER_ID_LENGTH);
  }

  async ensure(session: Session, call: Call): Promise<string> {
    const known = this.#running.get(session);
    if (known !== undefined && known === session.row.container) return known;
    return await raceSignal(this.#ensuring.get(session) ?? this.#beginEnsuring(session), call.signal);
  }

  async boot(session: Session, at: BootRequest, call: Call): Promise<void> {
    const { storage, runtime, network, recentMounts } = this.#options;
    const { head, id, path: mounted, network: wanted } = at;
    const path = mounted ?? recentMounts?.take(head) ?? (await storage.mountHead(head, call)).path;
    const { limits, networkPolicy } = session.row;
    const attached =
      wanted === "always" || needsNetwork(networkPolicy)
        ? { network: await network.attach(id, networkPolicy ?? DENY_ALL, call) }
        : {};
    if (at.isAwaited === true) runtime.prewarm?.hurry(id);
    await runtime.start({ id, rootPath: path, hostname: "turnbox", limits, ...attached }, call);
  }

  adopt(session: Session, id: string): void {
    this.#running.set(session, id);
  }

  suspect(session: Session): void {
    this.#running.delete(session);
  }

  resident(session: Session): string | undefined {
    const { phase, container } = session.row;
    const isSettled = !session.gate.isClosed && !this.#ensuring.has(session) && !this.#losing.has(session);
    return isSettled && (phase.kind === "active" || phase.kind === "paused") ? (container ?? undefined) : undefined;
  }

  async lose(session: Session, id: string, call: Call): Promise<void> {
    if (this.resident(session) !== id) return;
    const work = this.#takeAway(session, id, call).finally(() => void this.#losing.delete(session));
    this.#losing.set(session, work);
    await work;
  }

  retire(session: Session, end: () => Promise<void>): void {
    const soon = new AbortController();
    const waited = this.#options.clock.sleep(RETIRE_AFTER_MS, { signal: soon.signal }).catch(() => undefined);
    const hurry = (): void => {
      soon.abort();
    };
    this.#retiring.set(session, { done: waited.then(end), hurry });
  }

  async settled(session: Session): Promise<void> {
    this.#retiring.get(session)?.hurry();
    await Promise.allSettled([
      this.#ensuring.get(session),
      this.#losing.get(session),
      this.#retiring.get(session)?.done,
    ]);
  }

  async end(session: Session, call: Call): Promise<void> {
    await this.settled(session);
    this.#running.delete(session);
    const id = session.row.container;
    if (id !== null) await this.#options.runtime.stop(id, call);
  }

  #beginEnsuring(session: Session): Promise<string> {
    const finding = this.#find(session).then((id) => {
      this.#running.set(session, id);
      return id;
    });
    this.#ensuring.set(session, finding);
    const done = (): void => void this.#ensuring.delete(session);
    finding.then(done, done);
    return finding;
  }

  /** One that runs, or a new one under an id that is durable before its boot. */
  async #find(session: Session): Promise<string> {
    const call = { signal: session.lifetime.signal };
    await session.returned;
    const { head } = session;
    const alive = await this.#recorded(session, call);
    if (alive !== null) return alive;
    const id = this.newId();
    await session.commit((row) => {
      if (row.headGeneration !== head.generation) {
        throw new SandboxError("GENERATION_CHANGED", "the session was rolled back meanwhile", {
          currentGeneration: row.generation,
        });
      }
      return { ...row, container: id, generation: row.generation + (row.container === null ? 0 : 1) };
    });
    try {
      await this.boot(session, { head, id, isAwaited: true }, call);
    } catch (thrown) {
      // Nothing ran in it, so the next attempt needs no new generation; but its id is kept until it is surely gone.
      await this.#options.runtime.stop(id, { signal: AbortSignal.timeout(STOP_TIMEOUT_MS) });
      await session.commit((row) => (row.container === id ? { ...row, container: null } : row));
      throw thrown;
    }
    return id;
  }

  /** The recorded container if it answers; a frozen one is thawed, because the service froze it when it stopped. */
  async #recorded(session: Session, call: Call): Promise<string | null> {
    const { runtime, log } = this.#options;
    const id = session.row.container;
    if (id === null) return null;
    const liveness = await runtime.liveness(id, call);
    if (liveness === "paused") await runtime.resume(id, call);
    if (liveness !== "gone") return id;
    log.warn({ sessionId: session.row.id, container: id }, "container is gone");
    await runtime.stop(id, call);
    return null;
  }

  /** Ended before it is given up: if only its gofer has died, the rest of it still writes to the session's files. */
  async #takeAway(session: Session, id: string, call: Call): Promise<void> {
    if (this.#running.get(session) === id) this.#running.delete(session);
    await this.#options.runtime.stop(id, call);
    await session.commit((row) =>
      row.container === id ? { ...row, container: null, generation: row.generation + 1 } : row,
    );
  }
}
