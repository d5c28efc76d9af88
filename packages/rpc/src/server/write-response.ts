import type { OutgoingHttpHeaders } from "node:http";
import { constants, type ServerHttp2Stream } from "node:http2";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import type { HttpRequest, HttpResponse } from "./http-handler.ts";

export interface WriteOptions {
  readonly request: HttpRequest;
  /** How long a reader may take nothing before its stream is cut. */
  readonly stalledReaderMs: number;
  /** Aborts when the server begins to close. */
  readonly closing: AbortSignal;
}

/**
 * Writes an answer at the pace of its reader. However it ends (written, failed, the reader gone or stalled), the body's
 * source is asked to end; a reader that goes away in the middle of a write does not leave it waiting.
 */
export async function writeResponse(
  answer: UniversalServerResponse,
  response: HttpResponse,
  options: WriteOptions,
): Promise<void> {
  const body = answer.body?.[Symbol.asyncIterator]();
  const endBody = (): void => {
    body?.return?.().catch(() => undefined);
  };
  response.once("close", endBody);
  // A write after the end of the connection is reported here as well as by "close".
  response.on("error", endBody);
  try {
    // Handlers may set headers until their first message, so the head waits for it.
    const first = await body?.next();
    if (isGone(response)) return;
    refuseRestOfBody(options.request, response);
    const target = writeHead(response, answer);
    if (first?.done === false && isWhole(first.value, answer, target)) {
      endRequest(options, response);
      target.end(first.value);
    } else {
      await writePieces({ first, body, target, trailer: answer.trailer }, response, options);
    }
  } catch (thrown) {
    // The connection may end between the look and the write.
    if (!isGone(response)) throw thrown;
  } finally {
    endBody();
  }
}

interface Pieces {
  readonly first: IteratorResult<Uint8Array> | undefined;
  /** What comes after the first. */
  readonly body: AsyncIterator<Uint8Array> | undefined;
  readonly target: Target;
  readonly trailer: Headers | undefined;
}

async function writePieces(
  { first, body, target, trailer }: Pieces,
  response: HttpResponse,
  options: WriteOptions,
): Promise<void> {
  for (let piece = first; piece?.done === false; piece = await body?.next()) {
    if (!target.write(piece.value)) await drained(response, options.stalledReaderMs);
    if (isGone(response)) return;
  }
  if (trailer !== undefined) response.addTrailers(toNodeHeaders(trailer));
  endRequest(options, response);
  target.end();
}

/** What the body is written to. */
type Target = HttpResponse | ServerHttp2Stream;

/**
 * Over HTTP/2 an answer without trailers goes by its stream: Node's response keeps every stream open for trailers, so that its
 * end comes by itself, one turn of the loop after the rest.
 */
function writeHead(response: HttpResponse, { status, header, trailer }: UniversalServerResponse): Target {
  const fields = toNodeHeaders(header);
  if ("stream" in response && trailer === undefined) {
    response.stream.respond({ ...fields, ":status": status });
    return response.stream;
  }
  response.writeHead(status, fields);
  return response;
}

/** Whether the piece is all of the answer, and there is room for it: its end goes with it then. */
function isWhole(piece: Uint8Array, { header, trailer }: UniversalServerResponse, target: Target): boolean {
  if (trailer !== undefined || piece.length >= target.writableHighWaterMark) return false;
  return header?.get("content-length") === String(piece.length);
}

/** Whether the reader is gone. */
export function isGone(response: HttpResponse): boolean {
  return "stream" in response ? response.stream.destroyed || response.stream.closed : response.destroyed;
}

/** Resolves when there is room again, or the reader is gone. */
async function drained(response: HttpResponse, stalledReaderMs: number): Promise<void> {
  if (isGone(response)) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      for (const event of ["drain", "close", "error"]) response.off(event, done);
      resolve();
    };
    const timer = setTimeout(() => {
      cut(response);
      done();
    }, stalledReaderMs);
    for (const event of ["drain", "close", "error"]) response.once(event, done);
  });
}

function cut(response: HttpResponse): void {
  if ("stream" in response) response.stream.close(constants.NGHTTP2_CANCEL);
  else response.destroy();
}

/** How long the rest of a request that has its response is read and discarded, so that the response arrives. */
const LINGER_MS = 1000;

/** A response to half a request over HTTP/1.1 ends the connection: the other half is not read. */
function refuseRestOfBody(request: HttpRequest, response: HttpResponse): void {
  if (!("stream" in response) && !request.complete) response.setHeader("connection", "close");
}

/** Over HTTP/2 the stream of an unfinished request is reset, after a while in which its sender can take the answer. */
function endRequest({ closing }: WriteOptions, response: HttpResponse): void {
  if (!("stream" in response) || response.stream.readableEnded) return;
  const { stream } = response;
  stream.removeAllListeners("readable");
  stream.resume();
  // It waits for the answer to be written by itself.
  const reset = (): void => {
    stream.close(constants.NGHTTP2_NO_ERROR);
  };
  const timer = setTimeout(reset, closing.aborted ? 0 : LINGER_MS);
  stream.once("close", () => {
    clearTimeout(timer);
  });
}

function toNodeHeaders(headers: Headers | undefined): OutgoingHttpHeaders {
  return Object.fromEntries(headers ?? []);
}
