import { describe, expect, it } from "@jest/globals";
import { errnoOf, isNeverSent } from "./connection-errno.ts";

const withCode = (code: unknown, cause?: unknown): Error => Object.assign(new Error("x", { cause }), { code });

describe("errnoOf", () => {
  it("finds the code at the end of the chain of causes, past codes that are numbers", () => {
    expect(errnoOf(withCode(14, withCode("ECONNREFUSED")))).toBe("ECONNREFUSED");
    expect(errnoOf(withCode("ERR_HTTP2_ERROR", withCode("ECONNRESET")))).toBe("ECONNRESET");
  });

  it("has none for what carries none, and survives a chain that bites its tail", () => {
    for (const thrown of [undefined, null, "ECONNREFUSED", new Error("x")]) expect(errnoOf(thrown)).toBeUndefined();
    const loop = withCode("EPIPE");
    loop.cause = loop;
    expect(errnoOf(loop)).toBe("EPIPE");
  });
});

describe("isNeverSent", () => {
  it("tells a connection that was never made from one that broke", () => {
    expect(["ECONNREFUSED", "EHOSTDOWN", "ERR_SOCKET_CONNECTION_TIMEOUT"].map(isNeverSent)).toEqual([true, true, true]);
    expect(["ECONNRESET", "ETIMEDOUT", "ERR_HTTP2_ERROR"].map(isNeverSent)).toEqual([false, false, false]);
  });
});
