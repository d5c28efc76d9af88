import { Code } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { ERROR_TABLE, isReason, type Reason, type ReasonRow } from "./reason.ts";

const ROWS = Object.entries(ERROR_TABLE) as [Reason, ReasonRow][];

describe("the error table", () => {
  it.each<[Reason, Code]>([
    ["SESSION_NOT_FOUND", Code.NotFound],
    ["SESSION_EXISTS", Code.AlreadyExists],
    ["SESSION_PAUSED", Code.FailedPrecondition],
    ["SESSION_DESTROYING", Code.FailedPrecondition],
    ["PROCESS_NOT_FOUND", Code.NotFound],
    ["ROLLBACK_IN_PROGRESS", Code.FailedPrecondition],
    ["INVALID_STATE", Code.FailedPrecondition],
    ["MAX_SESSIONS_REACHED", Code.ResourceExhausted],
    ["TOOLS_IN_FLIGHT", Code.FailedPrecondition],
    ["SNAPSHOTS_NOT_AVAILABLE", Code.Unimplemented],
  ])("gives the host's own error %s its code (D23)", (reason, code) => {
    expect(ERROR_TABLE[reason].code).toBe(code);
  });

  it.each<[Reason, Code]>([
    ["PROVIDER_NIL", Code.InvalidArgument],
    ["PROVIDER_BACKEND_INVALID", Code.InvalidArgument],
    ["PROVIDER_NOT_REGISTERED", Code.NotFound],
    ["REMOTE_SANDBOX_NOT_FOUND", Code.NotFound],
    ["SESSION_NOT_ACTIVE", Code.FailedPrecondition],
    ["CAPABILITY_NOT_SUPPORTED", Code.Unimplemented],
    ["PROVIDER_UNAVAILABLE", Code.Unavailable],
    ["SESSION_LIMIT_REACHED", Code.ResourceExhausted],
  ])("gives the environment's and the providers' error %s its code (D23)", (reason, code) => {
    expect(ERROR_TABLE[reason].code).toBe(code);
  });

  it.each(ROWS)("says in %s what happened and what to do, in whole sentences", (reason, row) => {
    expect(reason).toMatch(/^[A-Z][A-Z_]*[A-Z]$/);
    for (const sentence of [row.meaning, row.remedy]) expect(sentence).toMatch(/^[A-Z].{15,}\.$/s);
    expect(row.remedy).not.toBe(row.meaning);
  });

  it.each(ROWS)("does not invite a second run of %s where the first may have had its effect", (_reason, row) => {
    if (row.retry === "after_delay") expect(row.admitted).not.toBe("yes");
    if (row.admitted === "unknown" && row.retry === "after_delay") expect(row.code).toBe(Code.Unavailable);
  });

  it("never calls a good state a failure of the server", () => {
    const internal = ROWS.filter(([, row]) => row.code === Code.Internal || row.code === Code.Unknown);
    expect(internal.map(([reason]) => reason)).toEqual(["INTERNAL"]);
  });
});

describe("isReason", () => {
  it("knows the reasons of the table and nothing an object brings along", () => {
    expect(isReason("SESSION_PAUSED")).toBe(true);
    for (const other of ["", "session_paused", "constructor", "__proto__", "toString"])
      expect(isReason(other)).toBe(false);
  });
});
