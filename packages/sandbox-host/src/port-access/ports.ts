import { type Clock, invalidArgument, SandboxError, type Secret } from "@turnbox/core";
import type { Logger } from "pino";
import type { Exposure } from "../record/row.ts";
import type { Activity } from "../session/activity.ts";
import type { Heard, SessionEvents } from "../session/events.ts";
import { assertGeneration } from "../session/generation.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import type { Registry } from "../session/registry.ts";
import { inOrder, type Session } from "../session/session.ts";
import type { Dial } from "./dial.ts";
import { type ListenerOptions, type PortListener, startPortListener } from "./port-listener.ts";
import { isPortToken, signPortToken } from "./port-token.ts";

export interface PortAccess {
  readonly url: string;
  /** `host:port` of the url. */
  readonly address: string;
  readonly token: string;
  readonly expiresAtMs: number | null;
}

export interface PortAccessRequest {
  readonly idempotencyKey: string;
  readonly payload: string;
  readonly expectedGeneration: number | undefined;
  readonly port: number;
  /** Null is as long as the generation. */
  readonly ttlMs: number | null;
}

/** The ports of sessions that are reached from outside. Addresses and tokens end with the session's generation. */
export interface Ports extends AsyncDisposable {
  /** Gives an address and a token for a port; the same port of a generation keeps its address. */
  createAccess(session: Session, request: PortAccessRequest): Promise<PortAccess>;
  /** The same for a caller that is in the session's serial order already. */
  expose(session: Session, port: number): Promise<PortAccess>;
  /** Whether something inside accepts connections on the port. */
  dial: Dial;
  /** Listens again for what an earlier service had exposed. */
  load(): Promise<void>;
}

interface Deps {
  readonly registry: Registry;
  readonly receipts: Receipts;
  readonly events: SessionEvents;
  readonly activity: Activity;
  readonly clock: Clock;
  readonly log: Logger;
  readonly dial: Dial;
  readonly key: Secret;
  readonly bindAddress: string;
  readonly advertiseAddr: string;
  readonly tls: ListenerOptions["tls"];
}

interface Open {
  readonly session: Session;
  readonly exposure: Exposure;
  readonly listener: PortListener;
}

const MAX_EXPOSED = 64;
const MAX_PORT = 65_535;
const DIAL_TIMEOUT_MS = 30_000;
const PICKS = 8;

interface Receipt {
  readonly listenPort: number;
  readonly generation: number;
  readonly expiresAtMs: number | null;
}

export function createPorts(deps: Deps): Ports {
  const { registry, receipts, activity, clock, log, key } = deps;
  const open = new Set<Open>();
  /** An address that was one session's is not given to another one as long as this service lives. */
  const used = new Map<number, string>();
  const scheme = deps.tls === null ? "http" : "https";

  const isLive = ({ session, exposure }: Open): boolean =>
    registry.find(session.row.id) === session &&
    session.row.phase.kind !== "destroying" &&
    session.row.generation === exposure.generation;

  const listen = async (session: Session, wanted: Exposure): Promise<Open> => {
    const { token: sessionToken } = session.row;
    const { port, generation } = wanted;
    const isCurrent = (): boolean => session.row.generation === generation && session.row.phase.kind === "active";
    const listener = await startPortListener({
      bindAddress: deps.bindAddress,
      listenPort: wanted.listenPort,
      tls: deps.tls,
      dial: async () => {
        if (!isCurrent()) throw new SandboxError("GENERATION_CHANGED", "the address has ended");
        return await deps.dial(session, port, { signal: AbortSignal.timeout(DIAL_TIMEOUT_MS) });
      },
      isPublic: () => session.row.networkPolicy?.allowPublicIngress === true,
      isToken: (token) => isPortToken(key, token, { sessionToken, port, generation, nowMs: clock.nowMs() }),
      touch: () => {
        activity.touch(session);
      },
    });
    const entry = { session, exposure: { ...wanted, listenPort: listener.listenPort }, listener };
    open.add(entry);
    return entry;
  };

  /** A listener on a port that no other session has had. */
  const listenOnNewPort = async (session: Session, wanted: Omit<Exposure, "listenPort">): Promise<Open> => {
    for (let pick = 0; pick < PICKS; pick += 1) {
      const entry = await listen(session, { ...wanted, listenPort: 0 });
      const owner = used.get(entry.listener.listenPort) ?? session.row.token;
      if (owner === session.row.token) {
        used.set(entry.listener.listenPort, owner);
        return entry;
      }
      await close(entry);
    }
    throw new SandboxError("OVERLOADED", "no port of the host is free");
  };

  const close = async (entry: Open): Promise<void> => {
    open.delete(entry);
    await entry.listener[Symbol.asyncDispose]();
  };

  /** Closes what belongs to another generation, or to a session that is gone. */
  const closeEnded = async (): Promise<void> => {
    await Promise.all([...open].filter((entry) => !isLive(entry)).map(close));
  };
  /** A change of the session may also end connections of a listener that stays. */
  const checkOpen = (event: Heard): void => {
    for (const { session, listener } of open) {
      if (event.kind === "overflow" || event.session === session) listener.checkOpen();
    }
  };

  const accessOf = (session: Session, receipt: Receipt, port: number): PortAccess => {
    const { listenPort, generation, expiresAtMs } = receipt;
    const host = deps.advertiseAddr.includes(":") ? `[${deps.advertiseAddr}]` : deps.advertiseAddr;
    const address = `${host}:${String(listenPort)}`;
    const token = signPortToken(key, { sessionToken: session.row.token, port, generation, expiresAtMs });
    return { url: `${scheme}://${address}`, address, token, expiresAtMs };
  };

  const exposeNow = async (session: Session, port: number): Promise<Exposure> => {
    if (!Number.isInteger(port) || port < 1 || port > MAX_PORT)
      throw invalidArgument("port", `must be from 1 to ${String(MAX_PORT)}`);
    assertActive(session.row.phase, "CreatePortAccess");
    await closeEnded();
    const mine = [...open].filter((entry) => entry.session === session);
    const there = mine.find(({ exposure }) => exposure.port === port);
    if (there !== undefined) return there.exposure;
    if (mine.length >= MAX_EXPOSED)
      throw new SandboxError("OVERLOADED", `a session exposes at most ${String(MAX_EXPOSED)} ports`);
    const entry = await listenOnNewPort(session, { port, generation: session.row.generation });
    try {
      await session.commit((row) => ({
        ...row,
        exposures: [...row.exposures.filter(({ generation }) => generation === row.generation), entry.exposure],
      }));
    } catch (thrown) {
      await close(entry);
      throw thrown;
    }
    return entry.exposure;
  };

  const stop = new AbortController();
  const watch = async (): Promise<void> => {
    using heard = deps.events.listen();
    for (;;) {
      const event = await heard.next(stop.signal);
      if (event === undefined) return;
      checkOpen(event);
      await closeEnded().catch((err: unknown) => {
        log.warn({ err }, "an address that has ended could not be closed");
      });
    }
  };
  const watching = watch();

  return {
    dial: deps.dial,
    expose: async (session, port) => {
      const exposure = await exposeNow(session, port);
      return accessOf(session, { ...exposure, expiresAtMs: null }, port);
    },
    createAccess: async (session, request) => {
      const { port, ttlMs, idempotencyKey: idempotency, payload } = request;
      const keyed = { scope: `${session.row.token}/CreatePortAccess`, key: idempotency, payload };
      const receipt = await receipts.once<Receipt>(keyed, (receiptOf) =>
        inOrder(session, "CreatePortAccess", async () => {
          assertGeneration(session, request.expectedGeneration);
          const { listenPort, generation } = await exposeNow(session, port);
          const result = { listenPort, generation, expiresAtMs: ttlMs === null ? null : clock.nowMs() + ttlMs };
          const row = receiptOf(result);
          if (row !== undefined) await session.commit((same) => same, { receipt: row });
          return result;
        }),
      );
      return accessOf(session, receipt, port);
    },
    load: async () => {
      for (const session of registry.all()) {
        for (const exposure of session.row.exposures) {
          used.set(exposure.listenPort, session.row.token);
          if (exposure.generation !== session.row.generation) continue;
          await listen(session, exposure).catch((err: unknown) => {
            log.warn({ err, sessionId: session.row.id, port: exposure.port }, "a port has lost its address");
          });
        }
      }
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await watching;
      await Promise.all([...open].map(close));
    },
  };
}
