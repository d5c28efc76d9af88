import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { TemplateArchives } from "./template-archives.ts";

let home: string;
let directory: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "turnbox-archives-"));
  directory = join(home, "templates");
});
afterEach(() => {
  rmSync(home, { recursive: true });
});

async function keep(archives: TemplateArchives, name: string, digest: string, text: string): Promise<void> {
  await using draft = await archives.begin();
  for (const piece of text) await draft.write(Buffer.from(piece));
  await draft.keep({ name, digest });
}

describe("archives of templates", () => {
  it("are there again after a restart, in the order in which they were imported first", async () => {
    const archives = new TemplateArchives(directory);
    await keep(archives, "py", "bb", "one");
    await keep(archives, "py", "aa", "two");
    await keep(archives, "py", "bb", "one");
    const again = new TemplateArchives(directory);
    await again.load();
    const expected = [
      { name: "py", digest: "bb" },
      { name: "py", digest: "aa" },
    ];
    expect([archives.list(), again.list()]).toEqual([expected, expected]);
    expect((await buffer(again.read({ name: "py", digest: "bb" }))).toString()).toBe("one");
  });

  it("are discarded unless they are kept, also those that a service which died has left", async () => {
    const archives = new TemplateArchives(directory);
    const left = await archives.begin();
    await left.write(Buffer.from("half"));
    await new TemplateArchives(directory).load();
    expect(readdirSync(directory)).toEqual([]);
    await left[Symbol.asyncDispose]();
    await (await archives.begin())[Symbol.asyncDispose]();
    expect([readdirSync(directory), archives.list()]).toEqual([[], []]);
  });

  it("are gone when they are removed", async () => {
    const archives = new TemplateArchives(directory);
    await keep(archives, "py", "aa", "one");
    await archives.remove({ name: "py", digest: "aa" });
    expect([readdirSync(directory), archives.list()]).toEqual([[], []]);
  });

  it("fail by name if they cannot be stored", async () => {
    const archives = new TemplateArchives(directory);
    await archives.load();
    rmSync(directory, { recursive: true });
    await expect(archives.begin()).rejects.toMatchObject({ reason: "DATA_DISK_FULL" });
  });
});
