import type { Interceptor } from "@connectrpc/connect";
import { SandboxError } from "../../error/sandbox-error.ts";
import { guardStream } from "../guard-stream.ts";
import { placeOf } from "../request-gate.ts";

/**
 * Holds the call's place until its handler has really ended. A client that resets its streams as fast as it opens them
 * frees nothing: what its calls started counts until it is over.
 */
export const admissionInterceptor: Interceptor = (next) => async (request) => {
  const place = placeOf(request.contextValues);
  if (place?.enter() !== true) {
    // The signal knows why: the caller went away, its deadline passed, or the server is stopping.
    request.signal.throwIfAborted();
    throw new SandboxError("CANCELLED", "the call had no place any more", { admitted: "no" });
  }
  try {
    const response = await next(request);
    if (!response.stream) {
      place.release();
      return response;
    }
    return { ...response, message: guardStream(response.message, { signal: request.signal, onEnd: place.release }) };
  } catch (thrown) {
    place.release();
    throw thrown;
  }
};
