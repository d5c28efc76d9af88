import type { OutgoingHttpHeaders } from "node:http";
import { constants } from "node:http2";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import type { HttpRequest, HttpResponse } from "./http-handler.ts";
import type { WireForms } from "./wire-form.ts";

export interface WriteOptions {
  readonly request: HttpRequest;
  /** How long a reader may take nothing before its stream is cut. */
  readonly stalledReaderMs: number;
  /** Aborts when the server begins to close. */
  readonly closing: AbortSignal;
  /** Where messages of the answer may have a binary form of their own. */
  readonly forms?: WireForms | undefined;
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
    let piece = await body?.next();
    if (isGone(response)) return;
    refuseRestOfBody(options.request, response);
    response.writeHead(answer.status, toNodeHeaders(answer.header));
    for (; piece?.done === false; piece = await body?.next()) {
      if (!writePiece(response, piece.value, options.forms)) await drained(response, options.stalledReaderMs);
      if (isGone(response)) return;
    }
    if (answer.trailer !== undefined) response.addTrailers(toNodeHeaders(answer.trailer));
    endRequest(options, response);
    response.end();
  } catch (thrown) {
    // The connection may end between the look and the write.
    if (!isGone(response)) throw thrown;
  } finally {
    endBody();
  }
}

/** Answers whether there is room for more. Over HTTP/1.1 a corked answer that is full does not say when it is empty again. */
function writePiece(response: HttpResponse, piece: Uint8Array, forms: WireForms | undefined): boolean {
  const parts = forms?.replace(piece) ?? [piece];
  const stream = "stream" in response && parts.length > 1 ? response.stream : undefined;
  let hasRoom = true;
  stream?.cork();
  for (const part of parts) hasRoom = response.write(part);
  stream?.uncork();
  return hasRoom;
}

/** Whether nobody is there any more to write to. */
export function isGone(response: HttpResponse): boolean {
  return "stream" in response ? response.stream.destroyed || response.stream.closed : response.destroyed;
}

/** Resolves when there is room again, or nobody to write to. */
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

/** How long the rest of a request that is already answered is read and thrown away, so that the answer gets through. */
const LINGER_MS = 1000;

/** An answer to half a request over HTTP/1.1 ends the connection: nobody wants the other half. */
function refuseRestOfBody(request: HttpRequest, response: HttpResponse): void {
  if (!("stream" in response) && !request.complete) response.setHeader("connection", "close");
}

/** Over HTTP/2 the stream of an unfinished request is reset, after a while in which its sender can take the answer. */
function endRequest({ request, closing }: WriteOptions, response: HttpResponse): void {
  if (!("stream" in response) || request.complete) return;
  const { stream } = response;
  request.removeAllListeners("readable");
  request.resume();
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
