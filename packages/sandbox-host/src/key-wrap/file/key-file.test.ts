import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { addWrappingKey, loadOrCreateWrappingKeys } from "./key-file.ts";

describe("the key file", () => {
  let folder = "";
  let file = "";
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), "key-file-"));
    file = path.join(folder, "inner", "archive-keys");
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it("is made once, with one key, for its owner alone", () => {
    const keys = loadOrCreateWrappingKeys(file);
    expect(keys).toHaveLength(1);
    expect(keys[0]!.bytes).toHaveLength(32);
    expect(keys[0]!.id).toMatch(/^file:[0-9a-f]{32}$/);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(loadOrCreateWrappingKeys(file)).toEqual(keys);
  });

  it("gets a newer key behind the others", () => {
    const [first] = loadOrCreateWrappingKeys(file);
    addWrappingKey(file);
    const keys = loadOrCreateWrappingKeys(file);
    expect(keys).toHaveLength(2);
    expect(keys[0]).toEqual(first);
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  it("is reported if others may read it", () => {
    loadOrCreateWrappingKeys(file);
    chmodSync(file, 0o640);
    const loose: string[] = [];
    loadOrCreateWrappingKeys(file, { onLooseMode: (at, mode) => loose.push(`${at} ${mode.toString(8)}`) });
    expect(loose).toEqual([`${file} 640`]);
  });

  it("is refused if it holds something else, and what it holds is not shown", () => {
    loadOrCreateWrappingKeys(file);
    const good = readFileSync(file, "utf8");
    for (const content of ["", "\n", "abc\n", `${good}secretsecret\n`, good.slice(1)]) {
      writeFileSync(file, content);
      let thrown: unknown;
      try {
        loadOrCreateWrappingKeys(file);
      } catch (failure) {
        thrown = failure;
      }
      expect(thrown).toBeInstanceOf(SandboxError);
      expect((thrown as SandboxError).reason).toBe("CONFIG_INVALID");
      expect((thrown as SandboxError).message).not.toContain("secret");
    }
  });
});
