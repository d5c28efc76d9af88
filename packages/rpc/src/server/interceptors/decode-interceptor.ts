import type { Interceptor } from "@connectrpc/connect";
import { toRefusal } from "../failure.ts";

/**
 * Gives handlers a failure of the request's own stream (a later message that does not decode, a body that breaks off) as an error
 * of the table. An error of the protocol layer would be an unexpected one to all that they hand it to.
 */
export const decodeInterceptor: Interceptor = (next) => async (request) =>
  request.stream ? await next({ ...request, message: decoded(request.message) }) : await next(request);

async function* decoded<T>(messages: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (thrown) {
    throw toRefusal(thrown);
  }
}
