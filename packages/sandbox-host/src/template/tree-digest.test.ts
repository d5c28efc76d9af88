import { chmod, mkdir, mkdtemp, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { digestTree } from "./tree-digest.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "turnbox-tree-"));
});
afterEach(async () => {
  await rm(root, { recursive: true });
});
const digest = () => digestTree(root, { signal: new AbortController().signal, maxBytes: 1_000_000 });

describe("digestTree", () => {
  it("depends on paths, content, modes and link targets, and not on times", async () => {
    await writeFile(join(root, "a"), "one");
    await symlink("a", join(root, "link"));
    const seen = [await digest()];
    await utimes(join(root, "a"), 1, 1);
    expect(await digest()).toBe(seen[0]);
    for (const change of [
      () => writeFile(join(root, "a"), "two"),
      () => chmod(join(root, "a"), 0o600),
      () => mkdir(join(root, "d")),
      () => rm(join(root, "link")).then(() => symlink("b", join(root, "link"))),
    ]) {
      await change();
      seen.push(await digest());
    }
    expect(new Set(seen).size).toBe(seen.length);
  });

  it("distinguishes files by structure, not by their concatenated content", async () => {
    await writeFile(join(root, "a"), "x");
    await writeFile(join(root, "b"), "");
    const first = await digest();
    await writeFile(join(root, "a"), "");
    await writeFile(join(root, "b"), "x");
    expect(await digest()).not.toBe(first);
  });
});
