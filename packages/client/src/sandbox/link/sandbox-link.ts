import { type Clock, hasReason, raceSignal, SandboxError } from "@turnbox/core";
import type { Verb } from "@turnbox/protocol/turnbox/common/v1/access_pb";
import type { HostClients, TurnboxClients } from "../../client.ts";
import type { Endpoint } from "../../connection.ts";
import { DEFAULT_TIMEOUT_MS } from "./default-timeouts.ts";
import { createPatience, ownEnd, type Repeat } from "./patience.ts";

/** A sandbox on its host, as one connection with one token reaches it. */
export interface OpenSandbox extends Disposable {
  readonly sandboxId: string;
  readonly sessionId: string;
  readonly host: HostClients;
}

export interface LinkUse {
  /** Ends the attempts; the calls take it too. */
  readonly signal: AbortSignal;
  /** `keyed` unless given. */
  readonly repeat?: Repeat;
}

/**
 * The way to a sandbox. A connection that breaks, a host that restarts elsewhere and a token that runs out are got over by
 * asking the server again where the sandbox is; everything else is as the error table has it.
 */
export interface SandboxLink extends Disposable {
  readonly sandboxId: string;
  /** Aborted when the link is closed; calls take it together with their own. */
  readonly signal: AbortSignal;
  /** Makes the call, again if need be. `progress` says that something arrived, and renews the patience. */
  use<T>(call: (sandbox: OpenSandbox, progress: () => void) => Promise<T>, options: LinkUse): Promise<T>;
}

export interface LinkOptions {
  readonly server: TurnboxClients;
  /** The full one. */
  readonly sandboxId: string;
  readonly clock: Clock;
  readonly host: (endpoint: Endpoint) => HostClients;
  /** The way, if the server has said it already. */
  readonly access?: Access | undefined;
  /** What the tokens of the link allow; the server's choice unless given. */
  readonly verbs?: readonly Verb[];
}

/** What the server says about the way to a sandbox. */
export interface Access extends Endpoint {
  readonly sessionId: string;
}

/** Thrown by a call that cannot be made a second time, whatever the error table says of its cause. */
export class NotRepeatable extends Error {
  override readonly name = "NotRepeatable";
}

/** What made a connection unfit, and how long its caller waits. */
interface Failure {
  readonly error: SandboxError;
  readonly signal: AbortSignal;
}

/** A connection to the sandbox's host, and how many calls are on it. */
interface Route {
  readonly sandbox: OpenSandbox;
  users: number;
  state: "present" | "replaced";
}

/** Nothing is sent before the first call. */
export function createLink(options: LinkOptions): SandboxLink {
  return new Link(options);
}

class Link implements SandboxLink {
  readonly sandboxId: string;
  readonly #options: LinkOptions;
  readonly #over = new AbortController();
  #present: Route | undefined;
  #opening: Promise<Route> | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    this.sandboxId = options.sandboxId;
    this.#present = options.access === undefined ? undefined : this.#routeTo(options.access);
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  async use<T>(
    call: (sandbox: OpenSandbox, progress: () => void) => Promise<T>,
    { signal, repeat = "keyed" }: LinkUse,
  ): Promise<T> {
    const attempts = createAttempts(this.#options.clock, { repeat, signal });
    for (;;) {
      this.signal.throwIfAborted();
      let route: Route | undefined;
      try {
        const used = this.#present ?? (await raceSignal(this.#open(), signal));
        route = used;
        return await during(used, () => call(used.sandbox, attempts.progress));
      } catch (thrown) {
        if (thrown instanceof NotRepeatable) throw SandboxError.from(thrown.cause);
        const error = SandboxError.from(this.signal.aborted ? this.signal.reason : thrown);
        await attempts.failed(error, route === undefined ? "the way" : "the call");
        if (route !== undefined && isAboutRoute(error)) await this.#renew(route, { error, signal });
      }
    }
  }

  [Symbol.dispose](): void {
    this.#over.abort(new SandboxError("CANCELLED", "the sandbox's handle was closed"));
    this.#present?.sandbox[Symbol.dispose]();
  }

  #routeTo({ url, token, sessionId }: Access): Route {
    const clients = this.#options.host({ url, token });
    const sandbox = { sandboxId: this.sandboxId, sessionId, host: clients, [Symbol.dispose]: clients.close };
    return { sandbox, users: 0, state: "present" };
  }

  /** Many calls may need a connection at once; they share one. */
  #open(): Promise<Route> {
    this.#opening ??= this.#connect().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #connect(): Promise<Route> {
    const { server, verbs = [] } = this.#options;
    const access = await server.sandboxes.connectSandbox(
      { sandboxId: this.sandboxId, verbs: [...verbs] },
      { signal: this.signal, timeoutMs: DEFAULT_TIMEOUT_MS.read },
    );
    const old = this.#present;
    const route = this.#routeTo(access);
    this.#present = route;
    if (old !== undefined) replace(old);
    return route;
  }

  /** If the server is away too, the connection that there is stays: the host may come back at its old address. */
  async #renew(broken: Route, { error, signal }: Failure): Promise<void> {
    if (this.#present !== broken) return;
    await raceSignal(this.#open(), signal).catch((thrown: unknown) => {
      if (signal.aborted) throw ownEnd(signal, error);
      if (!isAway(thrown)) throw SandboxError.from(thrown);
    });
  }
}

/** What still runs over an old connection, under a token that ran out, may come to its end there. */
function replace(route: Route): void {
  route.state = "replaced";
  if (route.users === 0) route.sandbox[Symbol.dispose]();
}

async function during<T>(route: Route, work: () => Promise<T>): Promise<T> {
  route.users += 1;
  try {
    return await work();
  } finally {
    route.users -= 1;
    if (route.state === "replaced" && route.users === 0) route.sandbox[Symbol.dispose]();
  }
}

interface Attempts {
  progress(): void;
  /** Returns when there is to be another attempt, and throws the failure otherwise. */
  failed(error: SandboxError, what: "the way" | "the call"): Promise<void>;
}

/** The attempts of one call, by the error table. */
function createAttempts(clock: Clock, { repeat, signal }: Required<LinkUse>): Attempts {
  const patience = createPatience(clock);
  let token: "as it is" | "fresh" = "as it is";
  return {
    progress: () => {
      patience.progress();
      token = "as it is";
    },
    failed: async (error, what) => {
      if (what === "the way") {
        await patience.wait(error, { repeat: "keyed", signal });
        return;
      }
      // A token lasts an hour; the next one is asked for once.
      if (error.reason !== "UNAUTHENTICATED" || token === "fresh") await patience.wait(error, { repeat, signal });
      else token = "fresh";
    },
  };
}

const isAway = (thrown: unknown): boolean =>
  hasReason(thrown, "SERVER_UNREACHABLE", "HOST_UNREACHABLE", "SHUTTING_DOWN");

/** Whether another connection may help. */
const isAboutRoute = (error: SandboxError): boolean => isAway(error) || error.reason === "UNAUTHENTICATED";
