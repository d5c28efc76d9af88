import { type ClientHttp2Stream, constants, type IncomingHttpHeaders } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { getAbortSignalReason } from "@connectrpc/connect/protocol";
import type { ConnectionManager } from "./connection-manager.ts";
import { incompleteError, resetError, toConnectionError } from "./reset-error.ts";

export interface UnaryHttpRequest {
  /** Of the service that the connections lead to. */
  readonly url: string;
  readonly header: Headers;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export interface UnaryHttpResponse {
  readonly status: number;
  readonly fields: IncomingHttpHeaders;
  readonly body: Uint8Array;
}

const NOTHING = new Uint8Array();

/** Sends one message and returns the whole response, of at most `maxBytes`. Fails with `ConnectError` only. */
export async function exchange(
  connections: ConnectionManager,
  { url, header, body, signal }: UnaryHttpRequest,
  { maxBytes }: { readonly maxBytes: number },
): Promise<UnaryHttpResponse> {
  using call = new Exchange(signal, maxBytes);
  try {
    // A call whose signal has aborted before is not sent.
    if (!signal.aborted)
      call.begin(
        connections.request("POST", url.slice(connections.authority.length), Object.fromEntries(header)),
        body,
      );
    return await call.response;
  } catch (thrown) {
    throw toConnectionError(thrown);
  }
}

/** One request and its response. Ends with its signal, whatever it waits for. */
class Exchange implements Disposable {
  readonly #response = Promise.withResolvers<UnaryHttpResponse>();
  readonly #signal: AbortSignal;
  readonly #maxBytes: number;
  readonly #pieces: Buffer[] = [];
  #stream: ClientHttp2Stream | undefined;
  #head: IncomingHttpHeaders = {};
  #bytes = 0;
  #isComplete = false;

  constructor(signal: AbortSignal, maxBytes: number) {
    this.#signal = signal;
    this.#maxBytes = maxBytes;
    this.#response.promise.catch(() => undefined);
    if (signal.aborted) this.#onAbort();
    else signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  get response(): Promise<UnaryHttpResponse> {
    return this.#response.promise;
  }

  begin(opening: Promise<ClientHttp2Stream>, body: Uint8Array): void {
    // What fails while the request is handed to the stream fails the call, too.
    opening
      .then((stream) => {
        this.#send(stream, body);
      })
      .catch(this.#response.reject);
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
  }

  #send(stream: ClientHttp2Stream, body: Uint8Array): void {
    this.#stream = stream;
    stream.on("error", (error: Error) => {
      this.#response.reject(resetError(stream.rstCode, error) ?? error);
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
      if (!this.#isComplete) this.#response.reject(resetError(stream.rstCode) ?? incompleteError());
    });
    stream.end(body);
  }

  #take(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#bytes <= this.#maxBytes) {
      this.#pieces.push(piece);
      return;
    }
    this.#fail(new ConnectError(`the response has more than ${this.#maxBytes} bytes`, Code.ResourceExhausted));
  }

  /** Node emits `end` for a stream that was cut as well; then `close` rejects the response. */
  #finish({ rstCode }: ClientHttp2Stream): void {
    const { ":status": status, "content-length": length = String(this.#bytes) } = this.#head;
    const isWhole = rstCode === constants.NGHTTP2_NO_ERROR && Number(length) === this.#bytes;
    if (status === undefined || !isWhole) return;
    this.#isComplete = true;
    this.#response.resolve({ status: Number(status), fields: this.#head, body: join(this.#pieces) });
  }

  readonly #onAbort = (): void => {
    this.#fail(ConnectError.from(getAbortSignalReason(this.#signal), Code.Canceled));
  };

  #fail(reason: unknown): void {
    this.#response.reject(reason);
    if (this.#stream?.closed === false) this.#stream.close(constants.NGHTTP2_CANCEL);
  }
}

/** Most messages are one piece. */
function join(pieces: readonly Uint8Array[]): Uint8Array {
  const [first = NOTHING, ...more] = pieces;
  return more.length === 0 ? first : Buffer.concat(pieces);
}
