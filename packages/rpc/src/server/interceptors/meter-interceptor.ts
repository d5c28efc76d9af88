import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { RpcMeter } from "../../metrics/rpc-metrics.ts";

/** Tells the meter of each call that reaches the interceptors, and the code that its caller gets. */
export function createMeterInterceptor(meter: RpcMeter): Interceptor {
  return (next) => async (request) => {
    const end = meter.begin(request.method);
    try {
      const response = await next(request);
      if (response.stream) return { ...response, message: untilEnd(response.message, end) };
      end("ok");
      return response;
    } catch (thrown) {
      end(codeOf(thrown));
      throw thrown;
    }
  };
}

/** A stream that is never read has not ended: the signal ends it. */
async function* untilEnd<T>(stream: AsyncIterable<T>, end: (code: string) => void): AsyncGenerator<T> {
  let code = "canceled";
  try {
    yield* stream;
    code = "ok";
  } catch (thrown) {
    code = codeOf(thrown);
    throw thrown;
  } finally {
    end(code);
  }
}

export const codeOf = (thrown: unknown): string => codeToString(ConnectError.from(thrown).code);
