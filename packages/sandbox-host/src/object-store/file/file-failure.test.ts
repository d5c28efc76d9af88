import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { fileFailure, systemError } from "./file-failure.ts";

describe("fileFailure", () => {
  it.each([
    ["ENOSPC", "OBJECT_STORE_FULL"],
    ["EDQUOT", "OBJECT_STORE_FULL"],
    ["EACCES", "OBJECT_STORE_DENIED"],
    ["EROFS", "OBJECT_STORE_DENIED"],
    ["ELOOP", "OBJECT_STORE_DENIED"],
    ["ENOTDIR", "INVALID_ARGUMENT"],
    ["EISDIR", "INVALID_ARGUMENT"],
    ["NOT_AN_OBJECT", "OBJECT_DAMAGED"],
    ["EIO", "OBJECT_STORE_UNAVAILABLE"],
    ["ESTALE", "OBJECT_STORE_UNAVAILABLE"],
  ])("names %s as %s", (code, reason) => {
    expect(fileFailure(systemError({ code, message: "said" }), "a/b")).toMatchObject({ reason });
  });

  it("leaves our own errors and those that are no system errors as they are", () => {
    const own = new SandboxError("OBJECT_CHANGED", "x");
    const bug = new TypeError("x is not a function");
    expect(fileFailure(own)).toBe(own);
    expect(fileFailure(bug)).toBe(bug);
  });
});
