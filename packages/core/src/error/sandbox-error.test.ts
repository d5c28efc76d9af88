import { describe, expect, it } from "@jest/globals";
import { hasReason, invalidArgument, namingAborts, SandboxError } from "./sandbox-error.ts";

describe("SandboxError", () => {
  it("takes code, retry class and remedy from the table", () => {
    const error = new SandboxError("SESSION_PAUSED", "s1 is paused", { metadata: { sessionId: "s1" } });
    expect(error).toMatchObject({
      reason: "SESSION_PAUSED",
      retryable: true,
      admitted: "no",
      metadata: { sessionId: "s1" },
    });
    expect(error.remedy).toContain("Resume");
    expect(new SandboxError("INVALID_STATE", "x").retryable).toBe(false);
  });

  it("lets an error say more about its effect than the table knows", () => {
    expect(new SandboxError("CANCELLED", "x", { admitted: "no" }).admitted).toBe("no");
  });

  it("keeps its cause for the log", () => {
    const cause = new Error("disk");
    expect(new SandboxError("INTERNAL", "x", { cause }).cause).toBe(cause);
    expect("cause" in new SandboxError("INTERNAL", "x")).toBe(false);
  });
});

describe("SandboxError.from", () => {
  it("lets its own kind pass", () => {
    const error = new SandboxError("QUOTA_EXCEEDED", "x");
    expect(SandboxError.from(error)).toBe(error);
  });

  it("names deadlines and aborts", async () => {
    expect(SandboxError.from(AbortSignal.abort().reason).reason).toBe("CANCELLED");
    const timeout = AbortSignal.timeout(1);
    await new Promise((resolve) => timeout.addEventListener("abort", resolve));
    expect(SandboxError.from(timeout.reason).reason).toBe("DEADLINE_EXCEEDED");
  });

  it.each([new Error("secret"), "text", 7, null, undefined, { message: "secret" }])(
    "takes %p for INTERNAL without repeating it",
    (thrown) => {
      const error = SandboxError.from(thrown);
      expect(error).toMatchObject({ reason: "INTERNAL", message: "an unexpected failure", admitted: "unknown" });
      expect(error.cause).toBe(thrown);
    },
  );
});

describe("hasReason", () => {
  it("asks for one of several", () => {
    const error = new SandboxError("PORT_IN_USE", "x");
    expect(hasReason(error, "HOME_IN_USE", "PORT_IN_USE")).toBe(true);
    expect(hasReason(error, "HOME_IN_USE")).toBe(false);
    expect(hasReason(new Error("x"), "INTERNAL")).toBe(false);
  });
});

describe("invalidArgument", () => {
  it("names field and rule in message and metadata", () => {
    expect(invalidArgument("quota", "must be positive")).toMatchObject({
      reason: "INVALID_ARGUMENT",
      message: "quota: must be positive",
      metadata: { field: "quota", rule: "must be positive" },
    });
  });
});

describe("namingAborts", () => {
  it("names the abort and the deadline of a signal, and leaves everything else as it is", async () => {
    const failing = (failure: unknown): Promise<never> => namingAborts(Promise.reject(failure as Error));
    expect(await namingAborts(Promise.resolve(1))).toBe(1);
    await expect(failing(AbortSignal.abort().reason)).rejects.toMatchObject({ reason: "CANCELLED" });
    await expect(failing(new DOMException("late", "TimeoutError"))).rejects.toMatchObject({
      reason: "DEADLINE_EXCEEDED",
    });
    const other = new Error("broken");
    await expect(failing(other)).rejects.toBe(other);
    const ours = new SandboxError("SESSION_DESTROYING", "gone");
    await expect(failing(ours)).rejects.toBe(ours);
  });
});
