import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { completeRoot } from "./root-layout.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "turnbox-tree-"));
});
afterEach(async () => {
  await rm(root, { recursive: true });
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
