import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { CreateSessionRequestSchema } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { canonicalRequest } from "./keyed-request.ts";

describe("canonicalRequest", () => {
  it("is the same for maps in another order", () => {
    const one = create(CreateSessionRequestSchema, { labels: { a: "1", b: "2" } });
    const other = create(CreateSessionRequestSchema, { labels: { b: "2", a: "1" } });
    expect(canonicalRequest(CreateSessionRequestSchema, one)).toBe(canonicalRequest(CreateSessionRequestSchema, other));
  });

  it.each([
    { seconds: 2n ** 63n - 1n },
    { seconds: -(2n ** 63n) },
    { seconds: 1n, nanos: -1 },
    { seconds: 0n, nanos: 2 ** 31 - 1 },
  ])("names the field whose duration is in the range of binary alone: %p", (idleTimeout) => {
    const request = create(CreateSessionRequestSchema, { ttl: { seconds: 60n }, idleTimeout });
    expect(() => canonicalRequest(CreateSessionRequestSchema, request)).toThrow(
      expect.objectContaining({
        reason: "INVALID_ARGUMENT",
        metadata: expect.objectContaining({ field: "idle_timeout" }),
      }),
    );
  });
});
