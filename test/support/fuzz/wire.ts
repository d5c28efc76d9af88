import http from "node:http";
import http2 from "node:http2";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { TIMEOUT_FACTOR } from "../process.ts";
import type { Input } from "./input.ts";
import { pathOf } from "./methods.ts";

/** What came back, before anything of it is understood. */
export type RawAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly headers: Headers;
      readonly trailers: Headers;
      readonly body: Uint8Array;
      /** False if the test stopped reading. */
      readonly whole: boolean;
    }
  | { readonly kind: "cut" }
  | { readonly kind: "lost"; readonly why: string };

/** A service under test, and a token for each kind of caller. */
export interface Service {
  readonly url: string;
  readonly tokens: Readonly<Record<"home" | "sandbox" | "forged", string>>;
}

/** No call may take longer. */
export const HANG_MS = 30_000 * TIMEOUT_FACTOR;
const HANG = `no end within ${HANG_MS} ms`;
/** How long something that waits by its nature is left open. */
const OPEN_MS = 150;
/** When a caller goes away in the middle. */
const CUT_MS = 5;
const SLOW_MS = 40;

/** Methods whose answer comes when something happens. */
const WAITS = /^(Watch\w+|ReadOutput|AttachToolCall)$/;

/** Sends inputs, over connections that are kept. */
export class Wire implements Disposable {
  readonly #service: Service;
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  #session: http2.ClientHttp2Session | undefined;

  constructor(service: Service) {
    this.#service = service;
  }

  /**
   * Sends an input. One whose connection is gone before there is an answer is sent once more over a new one: a server closes
   * connections that have been idle, and those on which too many streams were cut.
   */
  async send(input: Input): Promise<RawAnswer> {
    const first = await this.#sendOnce(input);
    if (first.kind !== "lost" || first.why === HANG) return first;
    this.#session?.destroy();
    return await this.#sendOnce(input);
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
    this.#session?.destroy();
  }

  async #sendOnce(input: Input): Promise<RawAnswer> {
    const cutter = new AbortController();
    const mayWait = input.ending !== "end" || WAITS.test(input.method.name);
    const openMs = input.ending === "cut" ? CUT_MS : OPEN_MS;
    const limit = setTimeout(
      () => {
        cutter.abort(mayWait ? "cut" : HANG);
      },
      mayWait ? openMs : HANG_MS,
    );
    try {
      return await (input.form.http === 2 ? this.#http2(input, cutter.signal) : this.#http1(input, cutter.signal));
    } finally {
      clearTimeout(limit);
    }
  }

  #headers({ headers, credential }: Input): Record<string, string> {
    const token = credential === "none" ? undefined : this.#service.tokens[credential];
    return token === undefined ? { ...headers } : { ...headers, authorization: `Bearer ${token}` };
  }

  async #http1(input: Input, signal: AbortSignal): Promise<RawAnswer> {
    const { path, body } = targetOf(input);
    const request = http.request(new URL(path, this.#service.url), {
      method: body === null ? "GET" : "POST",
      headers: this.#headers(input),
      agent: this.#agent,
    });
    return await settle(signal, (answer) => {
      request.on("error", (error) => {
        if (!signal.aborted)
          answer(isEarlyAnswer(error, body ?? []) ? { kind: "cut" } : { kind: "lost", why: error.message });
      });
      request.on("response", (response) => {
        void collect(response, input, signal).then(({ body: bytes, whole }) => {
          const headers = toHeaders(response.headers);
          answer({
            kind: "answered",
            status: response.statusCode ?? 0,
            headers,
            trailers: toHeaders(response.trailers),
            body: bytes,
            whole,
          });
          if (!whole) request.destroy();
        });
      });
      signal.addEventListener("abort", () => request.destroy());
      sendBody(request, body ?? [], input);
    });
  }

  async #http2(input: Input, signal: AbortSignal): Promise<RawAnswer> {
    const { path, body } = targetOf(input);
    const { host, ...headers } = this.#headers(input);
    const head = { ...headers, ":method": body === null ? "GET" : "POST", ":path": path };
    const stream = this.#connection().request(host === undefined ? head : { ...head, ":authority": host });
    return await settle(signal, (answer) => {
      let trailers = new Headers();
      let responded = false;
      stream.on("error", (error: Error) => {
        if (!signal.aborted) answer({ kind: "lost", why: error.message });
      });
      stream.on("trailers", (fields: http2.IncomingHttpHeaders) => (trailers = toHeaders(fields)));
      stream.on("response", (fields) => {
        responded = true;
        void collect(stream, input, signal).then(({ body: bytes, whole }) => {
          const status = Number(fields[":status"]);
          answer({ kind: "answered", status, headers: toHeaders(fields), trailers, body: bytes, whole });
          if (!whole) stream.close(http2.constants.NGHTTP2_CANCEL);
        });
      });
      stream.on("close", () => {
        if (!responded && !signal.aborted) answer({ kind: "lost", why: `the stream was closed: ${stream.rstCode}` });
      });
      signal.addEventListener("abort", () => stream.close(http2.constants.NGHTTP2_CANCEL));
      sendBody(stream, body ?? [], input);
    });
  }

  #connection(): http2.ClientHttp2Session {
    if (this.#session === undefined || this.#session.destroyed || this.#session.closed) {
      this.#session = http2.connect(this.#service.url);
      this.#session.on("error", () => undefined);
    }
    return this.#session;
  }
}

/** Connect's GET has the message in the address. */
function targetOf({ method, form, pieces }: Input): {
  readonly path: string;
  readonly body: readonly Uint8Array[] | null;
} {
  if (form.protocol !== "get") return { path: pathOf(method), body: pieces };
  const message = Buffer.concat(pieces).subarray(0, 8000).toString("base64url");
  return { path: `${pathOf(method)}?connect=v1&encoding=${form.codec}&base64=1&message=${message}`, body: null };
}

/** Sockets hold less than this of a body that nothing reads. */
const SOCKET_BYTES = 1024 * 1024;

/**
 * Over HTTP/1.1 a service refuses a body that is too long while the rest of it is still being sent, and closes the connection. The
 * reset that follows can overtake the answer, so the answer may be lost.
 */
function isEarlyAnswer(error: Error, body: readonly Uint8Array[]): boolean {
  const bytes = body.reduce((sum, piece) => sum + piece.length, 0);
  return bytes > SOCKET_BYTES && "code" in error && (error.code === "EPIPE" || error.code === "ECONNRESET");
}

interface Sink {
  write(piece: Uint8Array): unknown;
  end(): unknown;
  destroy(): unknown;
}

function sendBody(sink: Sink, pieces: readonly Uint8Array[], { ending }: Input): void {
  for (const piece of pieces) sink.write(piece);
  if (ending === "end") sink.end();
}

async function settle(signal: AbortSignal, begin: (answer: (raw: RawAnswer) => void) => void): Promise<RawAnswer> {
  return await new Promise((resolve) => {
    signal.addEventListener("abort", () => {
      // What was read until now is looked at first.
      setImmediate(() => {
        resolve(signal.reason === HANG ? { kind: "lost", why: HANG } : { kind: "cut" });
      });
    });
    begin(resolve);
  });
}

/** Reads a body to its end, or until the test has seen enough. */
async function collect(
  source: Readable,
  { reading }: Input,
  signal: AbortSignal,
): Promise<{ readonly body: Uint8Array; readonly whole: boolean }> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of source) {
      chunks.push(chunk as Buffer);
      if (reading === "cut" && chunks.length > 1) return { body: Buffer.concat(chunks), whole: false };
      if (reading === "slow") await delay(SLOW_MS);
    }
  } catch {
    return { body: Buffer.concat(chunks), whole: false };
  }
  return { body: Buffer.concat(chunks), whole: !signal.aborted };
}

function toHeaders(fields: http.IncomingHttpHeaders | NodeJS.Dict<string | string[]>): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(fields))
    if (!name.startsWith(":") && value !== undefined) headers.set(name, String(value));
  return headers;
}
