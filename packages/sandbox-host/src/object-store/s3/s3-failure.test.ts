import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { classify, codeOf, type S3Failure, s3Failure } from "./s3-failure.ts";

const answer = (name: string, httpStatusCode: number): Error =>
  Object.assign(new Error("said"), { name, $metadata: { httpStatusCode } });

describe("classify", () => {
  it.each<[string, number, S3Failure]>([
    ["NoSuchKey", 404, "not_found"],
    ["NotFound", 404, "not_found"],
    ["NoSuchUpload", 404, "not_found"],
    ["NoSuchBucket", 404, "denied"],
    ["PreconditionFailed", 412, "changed"],
    ["UnknownError", 412, "changed"],
    ["ConditionalRequestConflict", 409, "busy"],
    ["SlowDown", 503, "busy"],
    ["UnknownError", 429, "busy"],
    ["ServiceUnavailable", 503, "unknown"],
    ["InternalError", 500, "unknown"],
    ["UnknownError", 502, "unknown"],
    ["RequestTimeout", 400, "unknown"],
    ["BadDigest", 400, "spoiled"],
    ["QuotaExceeded", 403, "full"],
    ["UnknownError", 507, "full"],
    ["AccessDenied", 403, "denied"],
    ["SignatureDoesNotMatch", 403, "denied"],
    ["NotImplemented", 501, "denied"],
    ["PermanentRedirect", 301, "denied"],
    ["InvalidRequest", 400, "denied"],
  ])("takes %s with the status %d for %s", (name, status, kind) => {
    expect(classify(answer(name, status))).toBe(kind);
  });

  it("takes a broken connection for unknown and missing credentials for a refusal", () => {
    expect(classify(Object.assign(new Error("socket hang up"), { code: "ECONNRESET" }))).toBe("unknown");
    expect(classify(Object.assign(new Error("none"), { name: "CredentialsProviderError" }))).toBe("denied");
    expect(classify(Object.assign(new Error("one of many"), { name: "AccessDenied" }))).toBe("denied");
    expect(classify("not even an error")).toBe("unknown");
  });
});

describe("s3Failure", () => {
  it("says what was asked for, the code, and what is known of the effect", () => {
    const lost = s3Failure(answer("InternalError", 500), "put a/b");
    expect(lost).toMatchObject({
      reason: "OBJECT_STORE_UNAVAILABLE",
      admitted: "unknown",
      metadata: { code: "InternalError" },
      message: expect.stringContaining("put a/b"),
    });
    const unsent = s3Failure(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }), "put a/b");
    expect(unsent).toMatchObject({ reason: "OBJECT_STORE_UNAVAILABLE", admitted: "no" });
    const own = new SandboxError("OBJECT_DAMAGED", "x");
    expect(s3Failure(own, "get a")).toBe(own);
  });
});

describe("codeOf", () => {
  it("prefers what the server said, then the name, the errno and the status", () => {
    expect(codeOf(Object.assign(answer("S3ServiceException", 400), { Code: "Odd" }))).toBe("Odd");
    expect(codeOf(answer("NoSuchKey", 404))).toBe("NoSuchKey");
    expect(codeOf(Object.assign(new Error("x"), { code: "EPIPE" }))).toBe("EPIPE");
    expect(codeOf(answer("UnknownError", 502))).toBe("HTTP 502");
  });
});
