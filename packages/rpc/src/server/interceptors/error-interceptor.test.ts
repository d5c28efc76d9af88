import { Code, ConnectError, createContextValues, type UnaryRequest } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { createErrorInterceptor, LogThrottle } from "./error-interceptor.ts";

function failing(reset: ConnectError, thrown: ConnectError) {
  const logged: unknown[] = [];
  const log = { error: (fields: unknown) => logged.push(fields) };
  const caller = new AbortController();
  const intercept = createErrorInterceptor({ log: log as never, clock: createManualClock() });
  const call = intercept(() => {
    caller.abort(reset);
    return Promise.reject(thrown);
  });
  const request = {
    signal: caller.signal,
    contextValues: createContextValues(),
    service: { typeName: "a.Service" },
    method: { name: "Do" },
  };
  return { logged, answer: call(request as unknown as UnaryRequest) };
}

it("takes a stream that its caller has reset for a caller that left, whatever code the reset carries", async () => {
  const reset = new ConnectError("http/2 stream closed with error code INTERNAL_ERROR (0x2)", Code.Internal);
  const { logged, answer } = failing(reset, reset);
  await expect(answer).rejects.toMatchObject({ code: Code.Canceled });
  expect(logged).toEqual([]);
});

it("logs a failure of its own, also where the caller has left", async () => {
  const { logged, answer } = failing(
    new ConnectError("reset", Code.Internal),
    new ConnectError("broken", Code.Internal),
  );
  await expect(answer).rejects.toMatchObject({ code: Code.Internal });
  expect(logged).toHaveLength(1);
});

describe("LogThrottle", () => {
  it("admits the allowance of each second and counts what it left out (attack 35)", async () => {
    const clock = createManualClock();
    const throttle = new LogThrottle({ clock, maxPerSecond: 2 });
    expect(Array.from({ length: 100 }, () => throttle.admit()).filter((answer) => answer !== undefined)).toHaveLength(
      2,
    );
    await clock.advance(1000);
    expect(throttle.admit()).toEqual({ suppressed: 98 });
    expect(throttle.admit()).toEqual({ suppressed: 0 });
  });
});
