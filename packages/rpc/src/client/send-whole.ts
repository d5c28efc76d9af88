import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { getAbortSignalReason } from "@connectrpc/connect/protocol";
import type { Http2Lines } from "./http2-lines.ts";
import { brokenOff, resetError, toLineError } from "./line-error.ts";

export interface WholeRequest {
  /** Of the service that the lines lead to. */
  readonly url: string;
  readonly header: Headers;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export interface WholeAnswer {
  readonly status: number;
  readonly fields: IncomingHttpHeaders;
  readonly body: Uint8Array;
}

const NOTHING = new Uint8Array();

/** Sends a request whose body is there, and answers when all of the answer is. Fails with `ConnectError` only. */
export async function sendWhole(
  lines: Http2Lines,
  { url, header, body, signal }: WholeRequest,
  { maxBytes }: { readonly maxBytes: number },
): Promise<WholeAnswer> {
  using call = new WholeCall(signal, maxBytes);
  try {
    if (!signal.aborted)
      call.begin(lines.request("POST", url.slice(lines.authority.length), Object.fromEntries(header)), body);
    return await call.answer;
  } catch (thrown) {
    throw toLineError(thrown);
  }
}

/** One request and its answer. Ends with its signal, whatever it waits for. */
class WholeCall implements Disposable {
  readonly #answer = Promise.withResolvers<WholeAnswer>();
  readonly #signal: AbortSignal;
  readonly #maxBytes: number;
  readonly #pieces: Buffer[] = [];
  #stream: ClientHttp2Stream | undefined;
  #head: IncomingHttpHeaders = {};
  #bytes = 0;
  #isAnswered = false;

  constructor(signal: AbortSignal, maxBytes: number) {
    this.#signal = signal;
    this.#maxBytes = maxBytes;
    // Whoever waits for something else hears of it by that.
    this.#answer.promise.catch(() => undefined);
    if (signal.aborted) this.#onAbort();
    else signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  get answer(): Promise<WholeAnswer> {
    return this.#answer.promise;
  }

  begin(opening: Promise<ClientHttp2Stream>, body: Uint8Array): void {
    opening.then((stream) => {
      this.#send(stream, body);
    }, this.#answer.reject);
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
  }

  #send(stream: ClientHttp2Stream, body: Uint8Array): void {
    this.#stream = stream;
    stream.on("error", (error: Error) => {
      this.#answer.reject(resetError(stream.rstCode, error) ?? error);
    });
    if (this.#signal.aborted) {
      stream.close(constants.NGHTTP2_CANCEL);
      return;
    }
    stream.on("response", (headers) => {
      this.#head = headers;
    });
    stream.on("data", (piece: Buffer) => {
      this.#take(piece);
    });
    stream.on("end", () => {
      this.#finish(stream);
    });
    stream.on("close", () => {
      if (!this.#isAnswered) this.#answer.reject(resetError(stream.rstCode) ?? brokenOff());
    });
    stream.end(body);
  }

  #take(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes <= this.#maxBytes) {
      this.#pieces.push(piece);
      return;
    }
    this.#fail(new ConnectError(`the answer has more than ${this.#maxBytes} bytes`, Code.ResourceExhausted));
  }

  /** Node ends a stream that was cut as well, which its close tells of then. */
  #finish({ rstCode }: ClientHttp2Stream): void {
    const { ":status": status, "content-length": length = String(this.#bytes) } = this.#head;
    const isWhole = rstCode === constants.NGHTTP2_NO_ERROR && Number(length) === this.#bytes;
    if (status === undefined || !isWhole) return;
    this.#isAnswered = true;
    this.#answer.resolve({ status: Number(status), fields: this.#head, body: join(this.#pieces) });
  }

  readonly #onAbort = (): void => {
    this.#fail(ConnectError.from(getAbortSignalReason(this.#signal), Code.Canceled));
  };

  #fail(reason: unknown): void {
    this.#answer.reject(reason);
    if (this.#stream?.closed === false) this.#stream.close(constants.NGHTTP2_CANCEL);
  }
}

/** Most messages are one piece. */
function join(pieces: readonly Uint8Array[]): Uint8Array {
  const [first = NOTHING, ...more] = pieces;
  return more.length === 0 ? first : Buffer.concat(pieces);
}
