import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { failureKind, MetAnother, storeFailure } from "./failure.ts";

const withCode = (code: string): Error => Object.assign(new Error("said"), { code });

describe("failureKind", () => {
  it.each([
    ["40001", "conflict"],
    ["40P01", "conflict"],
    ["28P01", "settings"],
    ["3D000", "settings"],
    ["57P01", "lost"],
    ["57P03", "lost"],
    ["57014", "lost"],
    ["08006", "lost"],
    ["53300", "lost"],
    ["55P03", "lost"],
    ["25006", "lost"],
    ["42P01", "refused"],
    ["22021", "refused"],
    ["XX000", "refused"],
    ["ECONNRESET", "lost"],
    ["ECONNREFUSED", "lost"],
    ["EPIPE", "lost"],
    ["EPERM", "lost"],
  ])("takes %s for %s", (code, kind) => {
    expect(failureKind(withCode(code))).toBe(kind);
  });

  it("takes an error without a code for a lost line, and a fault of ours for what it is", () => {
    expect(failureKind(new Error("Connection terminated unexpectedly"))).toBe("lost");
    expect(failureKind(new TypeError("x is not a function"))).toBe("refused");
    expect(failureKind(new SandboxError("EPOCH_STALE", "x"))).toBe("refused");
    expect(failureKind(new MetAnother("x"))).toBe("conflict");
  });
});

describe("storeFailure", () => {
  it("names the server and says what is known about the effect", () => {
    const lost = storeFailure("db:5432/fleet", withCode("57P03"), { admitted: "unknown" });
    expect(lost).toMatchObject({ reason: "STORE_UNAVAILABLE", admitted: "unknown" });
    expect(lost.message).toContain("db:5432/fleet");
    expect(storeFailure("db", withCode("28P01"), { admitted: "no" }).reason).toBe("CONFIG_INVALID");
    expect(storeFailure("db", withCode("42P01"), { admitted: "no" }).reason).toBe("INTERNAL");
    const ours = new SandboxError("EPOCH_STALE", "x");
    expect(storeFailure("db", ours, { admitted: "no" })).toBe(ours);
  });
});
