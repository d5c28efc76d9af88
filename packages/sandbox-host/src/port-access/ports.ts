import { type Clock, invalidArgument, type Log, SandboxError, type Secret } from "@turnbox/core";
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
  /** `host:port`, as in the url. */
  readonly address: string;
  readonly token: string;
  readonly expiresAtMs: number | null;
}

export interface PortAccessRequest {
  readonly idempotencyKey: string;
  readonly payload: string;
  readonly expectedGeneration: number | undefined;
  readonly port: number;
  /** Null means that the token lasts as long as the generation. */
  readonly ttlMs: number | null;
}

export interface PortsOptions {
  readonly registry: Registry;
  readonly receipts: Receipts;
  readonly events: SessionEvents;
  readonly activity: Activity;
  readonly clock: Clock;
  readonly log: Log;
  readonly dial: Dial;
  /** Signs the tokens of ports. */
  readonly key: Secret;
  /** The address that the host serves at. */
  readonly bindAddress: string;
  /** The address of the host as clients know it. */
  readonly advertiseAddr: string;
  /** Null means that ports are served without TLS. */
  readonly tls: ListenerOptions["tls"];
}

/** A listener for one port of one generation of a session. */
interface Exposed {
  readonly session: Session;
  readonly exposure: Exposure;
  readonly listener: PortListener;
}

/** What is kept of an access that was made; the token is made from it again. */
interface Receipt {
  readonly listenPort: number;
  readonly generation: number;
  readonly expiresAtMs: number | null;
}

/** The most ports of one session. */
const MAX_EXPOSED = 64;
const MAX_PORT = 65_535;
const DIAL_TIMEOUT_MS = 30_000;
/** How many free ports are tried until one was never another session's. */
const PICKS = 8;

/** The ports of sessions that are reached from outside. Addresses and tokens end with the session's generation. */
export class Ports implements AsyncDisposable {
  readonly #options: PortsOptions;
  readonly #exposed = new Set<Exposed>();
  /** The token of the session that each port was first given to. The port is given to no other one while this service lives. */
  readonly #owners = new Map<number, string>();
  readonly #stop = new AbortController();
  readonly #watching: Promise<void>;

  constructor(options: PortsOptions) {
    this.#options = options;
    this.#watching = this.#watch();
  }

  /** Makes an address and a token for a port; the same port of a generation keeps its address. */
  async createAccess(session: Session, request: PortAccessRequest): Promise<PortAccess> {
    const { port, ttlMs, idempotencyKey: idempotency, payload } = request;
    const { clock, receipts } = this.#options;
    const keyed = { scope: `${session.row.token}/CreatePortAccess`, key: idempotency, payload };
    const receipt = await receipts.once<Receipt>(keyed, (receiptOf) =>
      inOrder(session, "CreatePortAccess", async () => {
        assertGeneration(session, request.expectedGeneration);
        const { listenPort, generation } = await this.#expose(session, port);
        const result = { listenPort, generation, expiresAtMs: ttlMs === null ? null : clock.nowMs() + ttlMs };
        const row = receiptOf(result);
        if (row !== undefined) await session.commit((same) => same, { receipt: row });
        return result;
      }),
    );
    return this.#accessOf(session, receipt, port);
  }

  /** The same for a caller that is in the session's serial order already. The token lasts as long as the generation. */
  async expose(session: Session, port: number): Promise<PortAccess> {
    const exposure = await this.#expose(session, port);
    return this.#accessOf(session, { ...exposure, expiresAtMs: null }, port);
  }

  /** Listens again at the addresses that an earlier service gave. One that is taken by now is lost. */
  async load(): Promise<void> {
    const { registry, log } = this.#options;
    for (const session of registry.all()) {
      for (const exposure of session.row.exposures) {
        this.#owners.set(exposure.listenPort, session.row.token);
        if (exposure.generation !== session.row.generation) continue;
        await this.#listen(session, exposure).catch((err: unknown) => {
          log.warn({ err, sessionId: session.row.id, port: exposure.port }, "a port has lost its address");
        });
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#watching;
    await Promise.all([...this.#exposed].map((exposed) => this.#close(exposed)));
  }

  async #expose(session: Session, port: number): Promise<Exposure> {
    if (!Number.isInteger(port) || port < 1 || port > MAX_PORT)
      throw invalidArgument("port", `must be from 1 to ${String(MAX_PORT)}`);
    assertActive(session.row.phase, "CreatePortAccess");
    await this.#closeEnded();
    const own = [...this.#exposed].filter((exposed) => exposed.session === session);
    const there = own.find(({ exposure }) => exposure.port === port);
    if (there !== undefined) return there.exposure;
    if (own.length >= MAX_EXPOSED)
      throw new SandboxError("OVERLOADED", `a session exposes at most ${String(MAX_EXPOSED)} ports`);
    const exposed = await this.#listenOnNewPort(session, { port, generation: session.row.generation });
    const { exposure } = exposed;
    try {
      await session.commit((row) => ({
        ...row,
        exposures: [...row.exposures.filter(({ generation }) => generation === row.generation), exposure],
      }));
    } catch (thrown) {
      await this.#close(exposed);
      throw thrown;
    }
    return exposure;
  }

  /** Listens on a port that was never another session's. */
  async #listenOnNewPort(session: Session, wanted: Omit<Exposure, "listenPort">): Promise<Exposed> {
    for (let pick = 0; pick < PICKS; pick += 1) {
      const exposed = await this.#listen(session, { ...wanted, listenPort: 0 });
      const { listenPort } = exposed.listener;
      const owner = this.#owners.get(listenPort) ?? session.row.token;
      if (owner === session.row.token) {
        this.#owners.set(listenPort, owner);
        return exposed;
      }
      await this.#close(exposed);
    }
    throw new SandboxError("OVERLOADED", "no port of the host is free");
  }

  async #listen(session: Session, wanted: Exposure): Promise<Exposed> {
    const { bindAddress, tls, dial, key, clock, activity } = this.#options;
    const { token: sessionToken } = session.row;
    const { port, generation } = wanted;
    const isCurrent = (): boolean => session.row.generation === generation && session.row.phase.kind === "active";
    const listener = await startPortListener({
      bindAddress,
      listenPort: wanted.listenPort,
      tls,
      dial: async () => {
        if (!isCurrent()) throw new SandboxError("GENERATION_CHANGED", "the address has ended");
        return await dial(session, port, { signal: AbortSignal.timeout(DIAL_TIMEOUT_MS) });
      },
      isPublic: () => session.row.networkPolicy?.allowPublicIngress === true,
      isToken: (token) => isPortToken(key, token, { sessionToken, port, generation, nowMs: clock.nowMs() }),
      touch: () => {
        activity.touch(session);
      },
    });
    const exposed = { session, exposure: { ...wanted, listenPort: listener.listenPort }, listener };
    this.#exposed.add(exposed);
    return exposed;
  }

  async #close(exposed: Exposed): Promise<void> {
    this.#exposed.delete(exposed);
    await exposed.listener[Symbol.asyncDispose]();
  }

  /** Closes what belongs to an earlier generation, or to a session that is gone. */
  async #closeEnded(): Promise<void> {
    const ended = [...this.#exposed].filter((exposed) => !this.#isLive(exposed));
    await Promise.all(ended.map((exposed) => this.#close(exposed)));
  }

  #isLive({ session, exposure }: Exposed): boolean {
    return (
      this.#options.registry.find(session.row.id) === session &&
      session.row.phase.kind !== "destroying" &&
      session.row.generation === exposure.generation
    );
  }

  #accessOf(session: Session, receipt: Receipt, port: number): PortAccess {
    const { advertiseAddr, tls, key } = this.#options;
    const { listenPort, generation, expiresAtMs } = receipt;
    const host = advertiseAddr.includes(":") ? `[${advertiseAddr}]` : advertiseAddr;
    const address = `${host}:${String(listenPort)}`;
    const token = signPortToken(key, { sessionToken: session.row.token, port, generation, expiresAtMs });
    return { url: `${tls === null ? "http" : "https"}://${address}`, address, token, expiresAtMs };
  }

  async #watch(): Promise<void> {
    using listener = this.#options.events.listen();
    for (;;) {
      const event = await listener.next(this.#stop.signal);
      if (event === undefined) return;
      this.#checkOpen(event);
      await this.#closeEnded().catch((err: unknown) => {
        this.#options.log.warn({ err }, "an address that has ended could not be closed");
      });
    }
  }

  /** A change of the session may also end connections of a listener that stays. */
  #checkOpen(event: Heard): void {
    for (const { session, listener } of this.#exposed) {
      if (event.kind === "overflow" || event.session === session) listener.checkOpen();
    }
  }
}
