import { randomToken } from "@turnbox/core";
import type { Logger } from "pino";
import type { Runtime } from "../runtime/runtime.ts";
import type { HeadRef, Storage } from "../storage/storage.ts";
import type { Session } from "./session.ts";

/** Container ids are of one fixed length: runsc matches ids by prefix. */
const CONTAINER_ID_LENGTH = 16;

/**
 * The resident containers of sessions: booted lazily, one per session, found again after a restart. The id is durable
 * before the boot, so no container is ever without an owner.
 */
export interface Containers {
  /** The id of a container that runs on the session's head. One that died is replaced under a new generation. */
  ensure(session: Session, call: { readonly signal: AbortSignal }): Promise<string>;
  /** Boots a container on a head that is not live yet; the caller makes its id durable or ends it. */
  boot(session: Session, head: HeadRef, call: { readonly signal: AbortSignal }): Promise<string>;
  /** Takes over a container that the caller booted and committed. */
  adopt(session: Session, id: string): void;
  /** Says that the container did not answer; the next `ensure` looks again. */
  suspect(session: Session): void;
  /** Waits for a boot in progress, then ends the session's container if there is one. */
  end(session: Session, call: { readonly signal: AbortSignal }): Promise<void>;
}

export function createContainers(deps: {
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly log: Logger;
}): Containers {
  const { storage, runtime, log } = deps;
  const running = new WeakMap<Session, string>();
  const ensuring = new WeakMap<Session, Promise<string>>();

  const boot: Containers["boot"] = async (session, head, call) => {
    const { path } = await storage.mountHead(head, call);
    const id = randomToken(CONTAINER_ID_LENGTH);
    await start(session, { id, path }, call);
    return id;
  };

  const start = async (
    session: Session,
    at: { readonly id: string; readonly path: string },
    call: { readonly signal: AbortSignal },
  ) => {
    await runtime.start({ id: at.id, rootPath: at.path, hostname: "turnbox", limits: session.row.limits }, call);
  };

  /** The recorded container if it answers; a frozen one is thawed, because the service froze it when it stopped. */
  const recorded = async (session: Session, call: { readonly signal: AbortSignal }): Promise<string | null> => {
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
    const { path } = await storage.mountHead(session.head, call);
    const alive = await recorded(session, call);
    if (alive !== null) return alive;
    const id = randomToken(CONTAINER_ID_LENGTH);
    await session.commit((row) => ({
      ...row,
      container: id,
      generation: row.generation + (row.container === null ? 0 : 1),
    }));
    try {
      await start(session, { id, path }, call);
    } catch (thrown) {
      // Nothing ran in it, so the next attempt needs no new generation.
      await session.commit((row) => ({ ...row, container: null }));
      throw thrown;
    }
    return id;
  };

  return {
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
      return await abortable(finding, call.signal);
    },
    adopt: (session, id) => void running.set(session, id),
    suspect: (session) => void running.delete(session),
    end: async (session, call) => {
      await ensuring.get(session)?.catch(() => undefined);
      running.delete(session);
      const id = session.row.container;
      if (id !== null) await runtime.stop(id, call);
    },
  };
}

/** Stops waiting when the signal aborts; the work goes on for whoever else waits for it. */
async function abortable<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void => {
    aborted.reject(signal.reason as Error);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
