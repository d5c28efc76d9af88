import { describe, expect, it } from "@jest/globals";
import { ERROR_TABLE, invalidArgument, type Reason, SandboxError } from "@turnbox/core";
import { formatError, toErrorReport } from "./error-report.ts";
import { EXIT, exitCodeOf } from "./exit-code.ts";
import { remedyOf } from "./error-report.ts";

describe("toErrorReport", () => {
  it("has the documented shape", () => {
    const error = new SandboxError("FLEET_EXHAUSTED", "no room", { retryAfterMs: 1500, metadata: { instances: "2" } });
    expect(toErrorReport(error)).toEqual({
      error: {
        reason: "FLEET_EXHAUSTED",
        message: "no room",
        remedy: ERROR_TABLE.FLEET_EXHAUSTED.remedy,
        code: "resource_exhausted",
        retryable: true,
        retryAfterMs: 1500,
        metadata: { instances: "2" },
      },
    });
  });

  it("leaves out the delay where there is none", () => {
    expect(Object.keys(toErrorReport(invalidArgument("id", "must not be empty")).error)).toEqual([
      "reason",
      "message",
      "remedy",
      "code",
      "retryable",
      "metadata",
    ]);
  });

  it("survives JSON for every reason of the table", () => {
    for (const reason of Object.keys(ERROR_TABLE) as Reason[]) {
      const report = toErrorReport(new SandboxError(reason, "m"));
      expect(JSON.parse(JSON.stringify(report))).toEqual(report);
      expect(report.error.code).toMatch(/^[a-z]+(_[a-z]+)*$/);
    }
  });
});

describe("formatError", () => {
  it("prints reason, message and remedy", () => {
    expect(formatError(new SandboxError("SANDBOX_NOT_FOUND", "no sandbox x"))).toBe(
      `SANDBOX_NOT_FOUND: no sandbox x\nremedy: ${ERROR_TABLE.SANDBOX_NOT_FOUND.remedy}\n`,
    );
  });

  it("is broken between words on a terminal, with nothing that would act upon it, and elsewhere left as it is", () => {
    const error = new SandboxError("INTERNAL", "the\u001b[2J answer is not what was asked for");
    const remedy = "Try again.";
    expect(formatError(error, { stream: { isTTY: true, columns: 31 }, remedy })).toBe(
      "INTERNAL: the\\u{001b}[2J answer\n  is not what was asked for\nremedy: Try again.\n",
    );
    expect(formatError(error, { stream: {}, remedy })).toContain("\u001b[2J answer is not what was asked for\n");
  });
});

describe("remedyOf", () => {
  it.each<Reason>(["COMMAND_OUTCOME_UNKNOWN", "DEADLINE_EXCEEDED", "CANCELLED", "HOST_UNREACHABLE"])(
    "has for %s something that can be typed, and no word of keys",
    (reason) => {
      const remedy = remedyOf(new SandboxError(reason, "m"));
      expect(remedy).toMatch(/`turnbox [a-z]+`/);
      expect(remedy).not.toMatch(/\bkey\b/);
    },
  );

  it("prefers what the error itself brings along", () => {
    expect(remedyOf(new SandboxError("HOST_UNREACHABLE", "m", { metadata: { remedy: "Read the log." } }))).toBe(
      "Read the log.",
    );
  });
});

describe("exitCodeOf", () => {
  it.each<[Reason, number]>([
    ["SERVER_UNREACHABLE", EXIT.unreachable],
    ["SANDBOX_NOT_FOUND", EXIT.notFound],
    ["SNAPSHOT_NOT_FOUND", EXIT.notFound],
    ["TEMPLATE_NOT_FOUND", EXIT.notFound],
    ["INVALID_ARGUMENT", EXIT.usage],
    ["CANCELLED", EXIT.interrupted],
    ["UNAUTHENTICATED", EXIT.failed],
    ["HOME_IN_USE", EXIT.failed],
    ["INTERNAL", EXIT.failed],
  ])("gives %s the exit code %d", (reason, exitCode) => {
    expect(exitCodeOf(new SandboxError(reason, "m"))).toBe(exitCode);
  });
});
