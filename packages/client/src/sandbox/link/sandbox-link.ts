import { type Clock, hasReason, SandboxError } from "@turnbox/core";
import type { Verb } from "@turnbox/protocol/turnbox/common/v1/access_pb";
import type { HostClients, TurnboxClients } from "../../client.ts";
import type { Endpoint } from "../../connection.ts";
import { DEFAULT_TIMEOUT_MS } from "./default-timeouts.ts";
import { createPatience, ownEnd, type Repeat } from "./patience.ts";
import { untilAborted } from "./until-aborted.ts";

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

interface Line {
  readonly sandbox: OpenSandbox;
  users: number;
  state: "present" | "replaced";
}

/** Nothing is asked before the first call. */
export function createLink({ server, sandboxId, clock, host, access: told, verbs = [] }: LinkOptions): SandboxLink {
  const over = new AbortController();
  const lineTo = ({ url, token, sessionId }: Access): Line => {
    const clients = host({ url, token });
    const sandbox = { sandboxId, sessionId, host: clients, [Symbol.dispose]: clients.close };
    return { sandbox, users: 0, state: "present" };
  };
  let present = told === undefined ? undefined : lineTo(told);
  let opening: Promise<Line> | undefined;

  const connect = async (): Promise<Line> => {
    const access = await server.sandboxes.connectSandbox(
      { sandboxId, verbs: [...verbs] },
      { signal: over.signal, timeoutMs: DEFAULT_TIMEOUT_MS.read },
    );
    const old = present;
    present = lineTo(access);
    if (old !== undefined) replaced(old);
    return present;
  };
  /** Many calls may ask at once; one of them is enough. */
  const open = (): Promise<Line> => {
    opening ??= connect().finally(() => {
      opening = undefined;
    });
    return opening;
  };
  /** What still runs over an old connection, under a token that ran out, may come to its end there. */
  const replaced = (line: Line): void => {
    line.state = "replaced";
    if (line.users === 0) line.sandbox[Symbol.dispose]();
  };
  const during = async <T>(line: Line, work: () => Promise<T>): Promise<T> => {
    line.users += 1;
    try {
      return await work();
    } finally {
      line.users -= 1;
      if (line.state === "replaced" && line.users === 0) line.sandbox[Symbol.dispose]();
    }
  };
  /** A server that is away too leaves the connection that there is: the host may be back at its old place. */
  const renew = async (broken: Line, { error, signal }: Failure): Promise<void> => {
    if (present !== broken) return;
    await untilAborted(open(), signal).catch((thrown: unknown) => {
      if (signal.aborted) throw ownEnd(signal, error);
      if (!isAway(thrown)) throw SandboxError.from(thrown);
    });
  };

  return {
    sandboxId,
    signal: over.signal,
    use: async (call, { signal, repeat = "keyed" }) => {
      const attempts = createAttempts(clock, { repeat, signal });
      for (;;) {
        over.signal.throwIfAborted();
        let line: Line | undefined;
        try {
          const used = present ?? (await untilAborted(open(), signal));
          line = used;
          return await during(used, () => call(used.sandbox, attempts.progress));
        } catch (thrown) {
          if (thrown instanceof NotRepeatable) throw SandboxError.from(thrown.cause);
          const error = SandboxError.from(over.signal.aborted ? over.signal.reason : thrown);
          await attempts.failed(error, line === undefined ? "the way" : "the call");
          if (line !== undefined && isAboutLine(error)) await renew(line, { error, signal });
        }
      }
    },
    [Symbol.dispose]: () => {
      over.abort(new SandboxError("CANCELLED", "the sandbox's handle was closed"));
      present?.sandbox[Symbol.dispose]();
    },
  };
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
const isAboutLine = (error: SandboxError): boolean => isAway(error) || error.reason === "UNAUTHENTICATED";
