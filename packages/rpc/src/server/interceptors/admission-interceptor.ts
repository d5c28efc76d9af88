import type { Interceptor } from "@connectrpc/connect";
import { SandboxError } from "@turnbox/core";
import { guardStream } from "../guard-stream.ts";
import { permitOf } from "../request-gate.ts";

/**
 * Holds the call's permit until its handler has really ended. A client that resets its streams as fast as it opens them
 * frees nothing: what its calls started counts until it is over.
 */
export const admissionInterceptor: Interceptor = (next) => async (request) => {
  const permit = permitOf(request.contextValues);
  if (permit?.enter() !== true) {
    // The signal knows why: the caller went away, its deadline passed, or the server is stopping.
    request.signal.throwIfAborted();
    throw new SandboxError("CANCELLED", "the call had no place any more", { admitted: "no" });
  }
  try {
    const response = await next(request);
    if (!response.stream) {
      permit.release();
      return response;
    }
    return { ...response, message: guardStream(response.message, { signal: request.signal, onEnd: permit.release }) };
  } catch (thrown) {
    permit.release();
    throw thrown;
  }
};
