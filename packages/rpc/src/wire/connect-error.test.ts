import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { errorFromJsonBytes, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { findTrailerError, setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { describe, expect, it } from "@jest/globals";
import { ErrorDetailSchema } from "@turnbox/protocol/turnbox/common/v1/error_pb";
import { ERROR_TABLE, type Reason, SandboxError } from "@turnbox/core";
import { fromConnectError, toConnectError } from "./connect-error.ts";

const overJson = (error: ConnectError): ConnectError =>
  errorFromJsonBytes(errorToJsonBytes(error, undefined), undefined, new ConnectError("unreadable", Code.Unknown));

const overTrailer = (error: ConnectError): ConnectError => {
  const trailer = new Headers();
  setTrailerStatus(trailer, error);
  const found = findTrailerError(trailer);
  if (found === undefined) throw new Error("no error in the trailer");
  return found;
};

describe.each([
  ["Connect's JSON", overJson],
  ["gRPC's trailer", overTrailer],
])("an error over %s", (_name, travel) => {
  it.each(Object.keys(ERROR_TABLE) as Reason[])("arrives as %s with its code", (reason) => {
    const wire = travel(toConnectError(new SandboxError(reason, "what happened"), "r1"));
    expect(wire.code).toBe(ERROR_TABLE[reason].code);
    expect(fromConnectError(wire)).toMatchObject({
      reason,
      message: "what happened",
      admitted: ERROR_TABLE[reason].admitted,
    });
  });

  it("arrives short and as Unicode, whatever it quotes", () => {
    const quoted = `half \ud800 and ${"é".repeat(100_000)}`;
    const error = new SandboxError("SESSION_NOT_FOUND", quoted, { metadata: { sessionId: quoted } });
    const seen = fromConnectError(travel(toConnectError(error, "r1")));
    expect(seen.reason).toBe("SESSION_NOT_FOUND");
    expect(Buffer.byteLength(seen.message)).toBeLessThan(1100);
    expect(seen.message).toMatch(/^half \ufffd and é+…$/);
    expect(seen.metadata["sessionId"]).toMatch(/^half \ufffd and é+…$/);
  });

  it("keeps reason, retryable, admitted, retry_after, generation, metadata, remedy and request id", () => {
    const sent = new SandboxError("GENERATION_CHANGED", "generation is 4, not 3", {
      admitted: "unknown",
      retryAfterMs: 1500,
      currentGeneration: 4,
      metadata: { sessionId: "s1", note: "ünïcode\n" },
    });
    const wire = travel(toConnectError(sent, "request-1"));
    const detail = wire.findDetails(ErrorDetailSchema)[0];
    expect(detail).toMatchObject({ retryable: false, remedy: sent.remedy, requestId: "request-1" });
    expect(fromConnectError(wire)).toMatchObject({
      reason: "GENERATION_CHANGED",
      retryable: false,
      admitted: "unknown",
      retryAfterMs: 1500,
      currentGeneration: 4,
      metadata: { sessionId: "s1", note: "ünïcode\n", requestId: "request-1" },
    });
  });

  it("tells generation 0 and no wait from absent ones", () => {
    const wire = travel(
      toConnectError(new SandboxError("OVERLOADED", "x", { retryAfterMs: 0, currentGeneration: 0 }), ""),
    );
    expect(fromConnectError(wire)).toMatchObject({ retryAfterMs: 0, currentGeneration: 0 });
    const bare = fromConnectError(travel(toConnectError(new SandboxError("OVERLOADED", "x"), "")));
    expect(bare.retryAfterMs).toBeUndefined();
    expect(bare.currentGeneration).toBeUndefined();
  });
});

describe("toConnectError", () => {
  it("keeps causes, stacks and messages of unexpected throws on this side", () => {
    const error = toConnectError(new Error("open /srv/secret: EACCES"), "r1");
    expect(error.code).toBe(Code.Internal);
    expect(new TextDecoder().decode(errorToJsonBytes(error, undefined))).not.toMatch(/srv|EACCES|at /);
  });
});

describe("fromConnectError", () => {
  it("lets its own kind pass", () => {
    const error = new SandboxError("QUOTA_EXCEEDED", "x");
    expect(fromConnectError(error)).toBe(error);
  });

  it("judges a peer without detail by its code", () => {
    expect(fromConnectError(new ConnectError("x", Code.Unavailable)).reason).toBe("HOST_UNREACHABLE");
    expect(fromConnectError(new ConnectError("x", Code.DataLoss)).reason).toBe("INTERNAL");
  });

  it("takes a reason that it does not know yet for the general one of the code", () => {
    const value = create(ErrorDetailSchema, { reason: "FROM_THE_FUTURE", retryable: true, metadata: { a: "b" } });
    const error = new ConnectError("x", Code.Unavailable, undefined, [{ desc: ErrorDetailSchema, value }]);
    expect(fromConnectError(error)).toMatchObject({ reason: "HOST_UNREACHABLE", metadata: { a: "b" } });
  });

  it("names aborts and deadlines that never reached the peer", async () => {
    expect(fromConnectError(AbortSignal.abort().reason).reason).toBe("CANCELLED");
    const timeout = AbortSignal.timeout(1);
    await new Promise((resolve) => timeout.addEventListener("abort", resolve));
    expect(fromConnectError(timeout.reason).reason).toBe("DEADLINE_EXCEEDED");
  });
});
