import { describe, expect, it } from "@jest/globals";
import { parseCopyEnd } from "./copy-end.ts";

describe("an end of a copy", () => {
  it.each([
    ["web:/etc/passwd", "web", "/etc/passwd"],
    ["fleet:i1:abc:/a:b/c", "fleet:i1:abc", "/a:b/c"],
    ["web:notes/today", "web", "notes/today"],
    ["web:notes", "web", "notes"],
    ["web:", "web", "/workspace"],
  ])("is in a sandbox: %s", (word, reference, path) => {
    expect(parseCopyEnd(word)).toEqual({ at: "sandbox", reference, path });
  });

  it.each(["notes", "./a:b", "../a:b/c", "/a:b", "dir/a:b", "."])("is here: %s", (path) => {
    expect(parseCopyEnd(path)).toEqual({ at: "here", path });
  });

  it("needs a sandbox before its colon", () => {
    expect(() => parseCopyEnd(":/path")).toThrow(/names no sandbox/);
  });
});
