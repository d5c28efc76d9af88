import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { boundAllSandboxes } from "./parent-cgroup.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "turnbox-cgroup-"));
  await mkdir(join(root, "turnbox"));
});
afterEach(async () => {
  await rm(root, { recursive: true });
});

describe("boundAllSandboxes", () => {
  it.each([
    [1, "memory.limit_in_bytes", "memory.limit_in_bytes"],
    [2, "cgroup.controllers", "memory.max"],
  ] as const)("bounds the group of all in version %d", async (version, offered, file) => {
    await writeFile(join(root, offered), "cpu memory pids");
    await writeFile(join(root, "turnbox", file), "max");
    expect(await boundAllSandboxes("/turnbox", 123, [{ version, mountPoint: root }])).toBe("bounded");
    expect(await readFile(join(root, "turnbox", file), "utf8")).toMatch(/^123/);
  });

  it("leaves hierarchies alone that do not know memory", async () => {
    await writeFile(join(root, "cgroup.controllers"), "cpu pids");
    const mounts = [1, 2].map((version) => ({ version: version as 1 | 2, mountPoint: root }));
    expect(await boundAllSandboxes("/turnbox", 123, mounts)).toBe("not_possible");
  });
});
