import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createOnce } from "./create-once.ts";

describe("createOnce", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), "create-once-"));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it("keeps what the first one wrote and leaves no draft behind", () => {
    const file = path.join(folder, "a");
    expect(createOnce(file, { content: "first", mode: 0o600 })).toBe("created");
    expect(createOnce(file, { content: "second", mode: 0o600 })).toBe("exists");
    expect(readFileSync(file, "utf8")).toBe("first");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(["a"]);
  });

  it("throws what the system says where the folder is missing", () => {
    expect(() => createOnce(path.join(folder, "b", "c"), { content: "", mode: 0o600 })).toThrow("ENOENT");
  });
});
