import { chown, link, mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { createChildCommandRunner } from "@turnbox/core";
import { storageSuite } from "../storage.suite.ts";
import { LocalDiskStorage } from "./local-disk-storage.ts";

const call = { signal: new AbortController().signal };

async function createHarness() {
  const root = await mkdtemp(join(tmpdir(), "turnbox-disk-"));
  const restarted = () => new LocalDiskStorage({ runner: createChildCommandRunner(), root });
  const storage = restarted();
  await storage.open(call);
  return {
    root,
    storage,
    restarted,
    [Symbol.asyncDispose]: async () => {
      await rm(root, { recursive: true, force: true });
    },
  };
}

storageSuite("local-disk", createHarness, { quota: "remembered", mounts: "none", streams: "none" });

describe("LocalDiskStorage", () => {
  it("keeps owners and hard links in copies", async () => {
    await using harness = await createHarness();
    const base = { name: "links", digest: "ab" };
    await harness.storage.createBase(
      base,
      async (directory) => {
        await writeFile(join(directory, "a"), "x");
        await chown(join(directory, "a"), 1000, 1001);
        await link(join(directory, "a"), join(directory, "b"));
      },
      call,
    );
    const { path } = await harness.storage.createSession(
      { token: "t1", origin: { kind: "base", base }, marks: {} },
      call,
    );
    const [a, b] = await Promise.all([stat(join(path, "a")), stat(join(path, "b"))]);
    expect([a.uid, a.gid, a.nlink]).toEqual([1000, 1001, 2]);
    expect(a.ino).toBe(b.ino);
  });

  it("at open takes away what a crash left half-made or half-removed", async () => {
    await using harness = await createHarness();
    for (const left of ["staging/x/root", "trash/y/heads"]) await mkdir(join(harness.root, left), { recursive: true });
    await harness.restarted().open(call);
    expect(await readdir(join(harness.root, "staging"))).toEqual([]);
    expect(await readdir(join(harness.root, "trash"))).toEqual([]);
  });

  it("lets only root list tokens", async () => {
    await using harness = await createHarness();
    expect((await stat(join(harness.root, "sessions"))).mode & 0o777).toBe(0o711);
  });
});
