import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { checkAnswer } from "./check-answer.suite.ts";
import { type HostileAnswer, hostileAnswer } from "./hostile-answer.suite.ts";
import type { ListenerOptions, PortListener } from "./port-listener.ts";

export interface FuzzReport {
  readonly answers: number;
  /** By what came of them. */
  readonly seen: Readonly<Record<string, number>>;
  /** What should not have been, the first of them: a client that got what a proxy must not send, or saw no end. */
  readonly wrong: readonly string[];
}

const AT_ONCE = 32;
/** A client that gets no end by then has stalled. */
const PATIENCE_MS = 10_000;
/** A server that holds the connection is left by its client. */
const HOLD_MS = 30;
const MAX_WRONG = 20;

/** A request of a client; the connection is its own. */
export interface FuzzRequest {
  readonly method: string;
  readonly more: string;
  readonly body?: string;
  readonly isUpgrade?: boolean;
}

export const FUZZ_REQUESTS: readonly [FuzzRequest, ...FuzzRequest[]] = [
  { method: "GET", more: "" },
  { method: "GET", more: "" },
  { method: "HEAD", more: "" },
  { method: "POST", more: "content-length: 4\r\n", body: "body" },
  { method: "GET", more: "upgrade: websocket\r\n", isUpgrade: true },
];

/** Has a server inside send so many seeded hostile answers to clients of a listener, and says what became of them. */
export async function fuzzListener(options: {
  readonly start: (listener: ListenerOptions) => Promise<PortListener>;
  readonly random: () => number;
  readonly answers: number;
}): Promise<FuzzReport> {
  const waiting = new Map<string, HostileAnswer>();
  const inside = createServer((socket) => {
    serve(socket, waiting);
  });
  inside.listen(0, "127.0.0.1");
  await once(inside, "listening");
  const { port } = inside.address() as AddressInfo;
  const listener = await options.start({
    bindAddress: "127.0.0.1",
    listenPort: 0,
    tls: null,
    dial: () => Promise.resolve(connect(port, "127.0.0.1")),
    isPublic: () => false,
    isToken: (token) => token === "good",
    touch: () => undefined,
  });
  const target = { port: listener.listenPort, token: "good" };
  const tally = new Tally();
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < options.answers) {
      const path = `/${String(next)}`;
      next += 1;
      const answer = hostileAnswer(options.random);
      const asked = chooseRequest(options.random);
      waiting.set(path, answer);
      const got = await ask(target, path, { ...asked, leave: answer.ending === "hold" });
      waiting.delete(path);
      tally.add(`${path} ${asked.method} ${asked.more.trim()}`, verdictOf(got, answer, asked));
      if (next % 10 === 0 && !(await isPlainAnswered(target))) tally.add(path, "stalled");
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  await listener[Symbol.asyncDispose]();
  inside.close();
  return { answers: options.answers, ...tally.report() };
}

export function chooseRequest(random: () => number): FuzzRequest {
  return FUZZ_REQUESTS[Math.floor(random() * FUZZ_REQUESTS.length)] ?? FUZZ_REQUESTS[0];
}

export class Tally {
  readonly #seen: Record<string, number> = {};
  readonly #wrong: string[] = [];

  add(what: string, verdict: string): void {
    const [kind = "", why] = verdict.split(": ", 1).concat(verdict);
    this.#seen[kind] = (this.#seen[kind] ?? 0) + 1;
    const isWrong = kind === "wrong" || kind === "stalled";
    if (isWrong && this.#wrong.length < MAX_WRONG) this.#wrong.push(`${what} ${why ?? ""}`);
  }

  report(): Pick<FuzzReport, "seen" | "wrong"> {
    return { seen: this.#seen, wrong: this.#wrong };
  }
}

/** What a client got for an answer, in a word; with more behind it if it is `wrong` or `stalled`. */
export function verdictOf(got: Buffer | "stalled", answer: HostileAnswer, asked: FuzzRequest): string {
  if (got === "stalled") return `stalled: ${JSON.stringify(answer.bytes.toString("latin1").slice(0, 300))}`;
  if (answer.ending === "hold") return "left";
  const checked = checkAnswer(got, asked.method);
  switch (checked.kind) {
    case "wrong":
      return `wrong: ${checked.why}`;
    case "switched":
      return asked.isUpgrade === true ? "switched" : "wrong: switched without being asked to";
    case "whole":
    case "cut":
      return checked.status === 502 ? "bad gateway" : checked.kind;
  }
}

/** An address of a port on this machine. */
export interface FuzzTarget {
  readonly port: number;
  readonly token: string;
}

const PLAIN = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nplain";

async function isPlainAnswered(target: FuzzTarget): Promise<boolean> {
  const got = await ask(target, "/plain", { method: "GET", more: "", leave: false });
  return got !== "stalled" && got.toString("latin1").endsWith("plain");
}

/** A server inside: sends the answer that waits for the path, whole or in pieces. */
function serve(socket: Socket, waiting: ReadonlyMap<string, HostileAnswer>): void {
  socket.on("error", () => undefined);
  socket.once("data", (request: Buffer) => {
    const path = request.toString("latin1").split(" ")[1] ?? "";
    const answer = waiting.get(path) ?? { bytes: Buffer.from(PLAIN), pieces: 1, ending: "close" as const };
    socket.resume();
    const size = Math.ceil(answer.bytes.length / answer.pieces) || 1;
    const send = (at: number): void => {
      if (socket.destroyed) return;
      if (at < answer.bytes.length) {
        socket.write(answer.bytes.subarray(at, at + size));
        setImmediate(send, at + size);
      } else if (answer.ending === "close") socket.end();
      else if (answer.ending === "reset") socket.resetAndDestroy();
    };
    send(0);
  });
}

/** All bytes that a client gets for a request until its connection ends. */
export async function ask(
  { port, token }: FuzzTarget,
  path: string,
  how: FuzzRequest & { readonly leave: boolean },
): Promise<Buffer | "stalled"> {
  const socket = connect(port, "127.0.0.1");
  const connection = how.more.startsWith("upgrade") ? "upgrade" : "close";
  const head = `${how.method} ${path} HTTP/1.1\r\nhost: a\r\nturnbox-port-token: ${token}\r\nconnection: ${connection}\r\n`;
  socket.write(`${head}${how.more}\r\n${how.body ?? ""}`);
  const parts: Buffer[] = [];
  const { promise, resolve } = Promise.withResolvers<Buffer | "stalled">();
  socket.on("data", (part: Buffer) => parts.push(part));
  socket.on("error", () => undefined);
  socket.on("close", () => {
    resolve(Buffer.concat(parts));
  });
  const timer = setTimeout(
    () => {
      resolve(how.leave ? Buffer.concat(parts) : "stalled");
      socket.destroy();
    },
    how.leave ? HOLD_MS : PATIENCE_MS,
  );
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
  }
}
