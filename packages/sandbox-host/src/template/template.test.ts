import { chmod, mkdir, mkdtemp, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { completeRoot } from "./root-layout.ts";
import { parseTemplateReference } from "./template-name.ts";
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

  it("tells a file from a directory's content by structure, not by concatenation", async () => {
    await writeFile(join(root, "a"), "x");
    await writeFile(join(root, "b"), "");
    const first = await digest();
    await writeFile(join(root, "a"), "");
    await writeFile(join(root, "b"), "x");
    expect(await digest()).not.toBe(first);
  });
});

describe("completeRoot", () => {
  it("makes the mount points and /workspace, and keeps what is there", async () => {
    await mkdir(join(root, "bin"));
    await writeFile(join(root, "bin/bash"), "");
    await completeRoot(root);
    await completeRoot(root);
  });

  it.each(["proc", "sys", "dev", "tmp", "run", "workspace"])(
    "refuses a link in the place of /%s (attack 20)",
    async (name) => {
      await mkdir(join(root, "bin"));
      await writeFile(join(root, "bin/bash"), "");
      await symlink("/etc", join(root, name));
      await expect(completeRoot(root)).rejects.toMatchObject({ reason: "TEMPLATE_INVALID" });
    },
  );

  it("refuses a root without bash", async () => {
    await expect(completeRoot(root)).rejects.toThrow("there is no bash");
  });
});

describe("parseTemplateReference", () => {
  it("takes a name, or a name and a version", () => {
    expect(parseTemplateReference("mini")).toEqual({ name: "mini", version: null });
    expect(parseTemplateReference("mini@0123abcd")).toEqual({ name: "mini", version: "0123abcd" });
  });

  it.each(["", "-x", "Mini", "a/b", "a@", "a@XYZ", "a@0123", "a..b", "a@0123abcd@x", "x".repeat(64), "a b", "a\n"])(
    "refuses %j",
    (raw) => {
      expect(() => parseTemplateReference(raw)).toThrow("base: ");
    },
  );
});
