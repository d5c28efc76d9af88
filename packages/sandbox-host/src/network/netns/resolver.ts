import { createSocket, type RemoteInfo } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { Clock } from "@turnbox/core";
import packet, { type Answer } from "dns-packet";
import { judgeAnswer, judgeName, normalizeName, type PolicyInForce } from "../../network-policy/policy.ts";
import { AskerLimits } from "./asker-limits.ts";
import type { ResolverPorts } from "./ruleset.ts";

/** An address that a name has. */
export interface NameAddress {
  readonly address: string;
  readonly ttl: number;
}

/** Looks up the IPv4 addresses of a name at the machine's resolvers; none if it has none or does not exist. */
export type LookUp = (name: string) => Promise<readonly NameAddress[]>;

/** The sandbox that a question comes from. */
export interface Asker {
  readonly policy: PolicyInForce;
  /** Lets the sandbox connect to the addresses; settles when it can. */
  pin(name: string, addresses: readonly NameAddress[]): Promise<void>;
  refused(destination: string, rule: string): void;
}

export interface ResolverOptions {
  readonly address: string;
  readonly lookUp: LookUp;
  readonly askerOf: (source: string) => Asker | undefined;
  readonly clock: Clock;
}

export interface Resolver extends AsyncDisposable {
  readonly ports: ResolverPorts;
}

const MAX_QUERY_BYTES = 1024;
const MAX_ANSWERS = 16;
/** Answers expire soon, so that a change of the policy or of the name takes effect. */
const MAX_TTL_S = 300;
const MAX_IN_FLIGHT = 256;
const MAX_TCP_SOCKETS = 256;
const MAX_TCP_SOCKETS_OF_ONE = 16;
const TCP_IDLE_MS = 5_000;

const RESPONSE = packet.RECURSION_DESIRED | packet.RECURSION_AVAILABLE;
const SERVFAIL = 2;
const NXDOMAIN = 3;
const NOTIMP = 4;

/**
 * The resolver of sandboxes. It answers A questions for names that the sandbox's policy allows, and AAAA questions for them
 * with no address; no other question and no other name leaves the machine. An allowed name that leads to a private or denied
 * address is refused like an unknown one. Questions beyond the sandbox's share get no answer. When it is disposed, no answer is
 * under way any more, even if the machine's resolvers still work on one.
 */
export async function startResolver(options: ResolverOptions): Promise<Resolver> {
  const { address } = options;
  const closing = new AbortController();
  const questions = new Questions(options, closing.signal);
  const udp = createSocket("udp4");
  udp.on("error", () => undefined);
  udp.on("message", (message: Buffer, from: RemoteInfo) => {
    questions
      .answer(from.address, message)
      .then((reply) => {
        if (reply !== undefined && !closing.signal.aborted) udp.send(reply, from.port, from.address, () => undefined);
      })
      // An answer that cannot be sent is like one that was lost: the sandbox repeats its question.
      .catch(() => undefined);
  });
  const sockets = new Set<Socket>();
  const tcp = createServer((socket) => {
    const source = socket.remoteAddress ?? "";
    const others = [...sockets].filter(({ remoteAddress }) => remoteAddress === source);
    if (others.length >= MAX_TCP_SOCKETS_OF_ONE) {
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    serveTcp(socket, (message) => questions.answer(source, message));
  });
  tcp.maxConnections = MAX_TCP_SOCKETS;
  udp.bind({ address, port: 0, exclusive: true });
  await once(udp, "listening");
  tcp.listen({ host: address, port: 0 });
  await once(tcp, "listening");
  tcp.on("error", () => undefined);
  return {
    ports: { udp: udp.address().port, tcp: (tcp.address() as AddressInfo).port },
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      for (const socket of sockets) socket.destroy();
      const closed = [once(udp, "close"), once(tcp, "close")];
      udp.close();
      tcp.close();
      await Promise.all(closed);
      await questions.idle();
    },
  };
}

/** The questions that are being answered, within the bounds of all and of each sandbox. */
class Questions {
  readonly #options: ResolverOptions;
  readonly #closing: AbortSignal;
  readonly #limits: AskerLimits;
  readonly #underWay = new Set<Promise<Buffer | undefined>>();

  constructor(options: ResolverOptions, closing: AbortSignal) {
    this.#options = options;
    this.#closing = closing;
    this.#limits = new AskerLimits(options.clock);
  }

  /** Undefined means no answer: to an unknown source, to what is not a question, and while the resolver closes. Never rejects. */
  async answer(source: string, message: Buffer): Promise<Buffer | undefined> {
    const asker = this.#options.askerOf(source);
    if (asker === undefined || this.#closing.aborted || !this.#limits.begin(source)) return undefined;
    const answering = this.#answerTo(asker, message);
    this.#underWay.add(answering);
    try {
      return await answering;
    } finally {
      this.#underWay.delete(answering);
      this.#limits.end(source);
    }
  }

  async #answerTo(asker: Asker, message: Buffer): Promise<Buffer | undefined> {
    const query = parseQuery(message);
    if (query === undefined) return undefined;
    try {
      if (this.#underWay.size >= MAX_IN_FLIGHT) return encode(query, SERVFAIL);
      const resolving = resolveQuery(query, asker, this.#options.lookUp, this.#closing);
      return await Promise.race([resolving, aborted(this.#closing, resolving)]);
    } catch {
      return this.#closing.aborted ? undefined : encode(query, SERVFAIL);
    }
  }

  /** Settles when no answer is under way, which is soon while the resolver closes. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }
}

/** Rejects when the signal aborts, unless the other promise has settled. */
async function aborted(signal: AbortSignal, other: Promise<unknown>): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => {
    reject(signal.reason as Error);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  const forget = (): void => {
    signal.removeEventListener("abort", onAbort);
  };
  other.then(forget, forget);
  return await promise;
}

interface Query {
  readonly id: number;
  readonly name: string;
  readonly type: string;
}

/** The one question of a plain query; undefined for anything else, which is not answered. */
function parseQuery(message: Buffer): Query | undefined {
  if (message.length > MAX_QUERY_BYTES) return undefined;
  try {
    const { id, type, questions } = packet.decode(message);
    const [question] = questions ?? [];
    if (type !== "query" || questions?.length !== 1 || question === undefined) return undefined;
    if ((question.class ?? "IN") !== "IN" || question.name.length > 253) return undefined;
    return { id: id ?? 0, name: question.name, type: question.type };
  } catch {
    return undefined;
  }
}

async function resolveQuery(query: Query, asker: Asker, lookUp: LookUp, closing: AbortSignal): Promise<Buffer> {
  const name = normalizeName(query.name);
  const verdict = judgeName(asker.policy, name);
  if (verdict.kind === "refused") {
    asker.refused(name, verdict.rule);
    return encode(query, NXDOMAIN);
  }
  if (query.type === "AAAA") return encode(query, 0);
  if (query.type !== "A") return encode(query, NOTIMP);
  const found = (await lookUp(name)).slice(0, MAX_ANSWERS);
  const open: NameAddress[] = [];
  for (const entry of found) {
    const { kind, ...why } = judgeAnswer(asker.policy, entry.address);
    if (kind === "allowed") open.push({ address: entry.address, ttl: Math.min(entry.ttl, MAX_TTL_S) });
    else asker.refused(`${name} (${entry.address})`, "rule" in why ? why.rule : "");
  }
  if (open.length === 0) return encode(query, NXDOMAIN);
  closing.throwIfAborted();
  await asker.pin(name, open);
  return encode(query, 0, open);
}

function encode({ id, name, type }: Query, code: number, addresses: readonly NameAddress[] = []): Buffer {
  return packet.encode({
    type: "response",
    id,
    flags: RESPONSE | code,
    questions: [{ name, type: type as "A", class: "IN" }],
    answers: addresses.map(({ address, ttl }): Answer => ({ type: "A", class: "IN", name, ttl, data: address })),
  });
}

/** Serves messages with their length before each, one after another. */
function serveTcp(socket: Socket, answer: (message: Buffer) => Promise<Buffer | undefined>): void {
  let pending = Buffer.alloc(0);
  socket.setTimeout(TCP_IDLE_MS, () => socket.destroy());
  socket.on("error", () => undefined);
  const take = async (): Promise<void> => {
    while (pending.length >= 2) {
      const length = pending.readUInt16BE(0);
      if (length > MAX_QUERY_BYTES) {
        socket.destroy();
        return;
      }
      if (pending.length < length + 2) return;
      const message = pending.subarray(2, length + 2);
      pending = pending.subarray(length + 2);
      const reply = await answer(message);
      if (reply === undefined || socket.destroyed) {
        socket.destroy();
        return;
      }
      const head = Buffer.alloc(2);
      head.writeUInt16BE(reply.length);
      socket.write(Buffer.concat([head, reply]));
    }
  };
  socket.on("data", (chunk: Buffer) => {
    pending = Buffer.concat([pending, chunk]);
    socket.pause();
    take().then(
      () => socket.resume(),
      () => socket.destroy(),
    );
  });
}
