import { Code, ConnectError } from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { ErrorDetailSchema } from "@turnbox/protocol/turnbox/common/v1/error_pb";
import { toFailure } from "./failure.ts";
import { REQUEST_ID_HEADER } from "./request-id.ts";

/**
 * Gives the failures of the protocol layer, which no interceptor sees (a body that is no JSON, a message beyond the
 * limit), the same detail as all others.
 */
export async function completeError(answer: UniversalServerResponse): Promise<UniversalServerResponse> {
  if (answer.trailer !== undefined && answer.body !== undefined)
    return completeTrailer(answer, answer.trailer, answer.body);
  const isError = answer.status !== 200 && answer.header?.get("content-type") === "application/json";
  if (!isError || answer.body === undefined || answer.header === undefined) return answer;
  const present = await readAll(answer.body);
  const failure = completed(errorFromJsonBytes(present, undefined, unreadable()), answer.header);
  const bytes = failure === undefined ? present : errorToJsonBytes(failure, undefined);
  answer.header.set("content-length", String(bytes.byteLength));
  return {
    ...answer,
    status: failure === undefined ? answer.status : codeToHttpStatus(failure.code),
    body: once(bytes),
  };
}

/** A gRPC status is in the trailer, which is complete when the body has ended. */
function completeTrailer(
  answer: UniversalServerResponse,
  trailer: Headers,
  body: AsyncIterable<Uint8Array>,
): UniversalServerResponse {
  const iterator = body[Symbol.asyncIterator]();
  const next = async (): Promise<IteratorResult<Uint8Array>> => {
    const piece = await iterator.next();
    if (piece.done !== true) return piece;
    const present = findTrailerError(trailer);
    const failure = present === undefined ? undefined : completed(present, answer.header);
    if (failure !== undefined) setTrailerStatus(trailer, failure);
    return piece;
  };
  return {
    ...answer,
    body: {
      [Symbol.asyncIterator]: () => ({
        next,
        return: async () => (await iterator.return?.()) ?? { done: true, value: undefined },
      }),
    },
  };
}

/** The error with its detail, or undefined if it has one. */
function completed(error: ConnectError, header: Headers | undefined): ConnectError | undefined {
  if (error.findDetails(ErrorDetailSchema).length > 0) return undefined;
  return toFailure(error, header?.get(REQUEST_ID_HEADER) ?? "").answer;
}

const unreadable = (): ConnectError => new ConnectError("an unexpected failure", Code.Internal);

async function readAll(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  return Buffer.concat(pieces);
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield await Promise.resolve(bytes);
}
