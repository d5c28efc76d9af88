import { appendFile, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { DirectoryJournal } from "./journal.ts";

describe("DirectoryJournal", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "turnbox-journal-"));
  });
  afterEach(async () => {
    await rm(directory, { recursive: true, force: true });
  });
  const write = async (text: string): Promise<void> => {
    await appendFile(join(directory, "output"), text);
  };

  it("reads from any offset, and nothing at the end", async () => {
    const journal = new DirectoryJournal(directory);
    expect(await journal.extent()).toEqual({ start: 0, end: 0 });
    await write("0123456789");
    expect(await journal.read(4, 3)).toEqual({ data: Buffer.from("456"), offset: 4 });
    expect(await journal.read(10, 3)).toEqual({ data: Buffer.alloc(0), offset: 10 });
  });

  it("keeps offsets over rotations and begins at the oldest byte it has (attack 34)", async () => {
    const journal = new DirectoryJournal(directory);
    await write("0123456789");
    await journal.rotate(4);
    await write("abc");
    expect(await journal.extent()).toEqual({ start: 6, end: 13 });
    expect(await journal.read(0, 100)).toEqual({ data: Buffer.from("6789"), offset: 6 });
    expect(await journal.read(10, 100)).toEqual({ data: Buffer.from("abc"), offset: 10 });
    await journal.rotate(4);
    expect(await journal.extent()).toEqual({ start: 10, end: 13 });
    expect((await readdir(directory)).toSorted()).toEqual(["output", "segment-10"]);
    expect(journal.keptBytes).toBe(3);
  });

  it("is the same for a later service", async () => {
    const first = new DirectoryJournal(directory);
    await write("0123456789");
    await first.rotate(4);
    await write("abc");
    const second = new DirectoryJournal(directory);
    await second.recover();
    expect(await second.extent()).toEqual({ start: 6, end: 13 });
  });

  it.each(["before", "after"] as const)(
    "ends a rotation that a crash cut off %s the file was emptied",
    async (when) => {
      const first = new DirectoryJournal(directory);
      await write("0123456789");
      await first.rotate(4);
      await write("abcdef");
      // What the next rotation has done at that point.
      await writeFile(join(directory, "rotating-12"), "cdef");
      if (when === "after") await writeFile(join(directory, "output"), "");
      const second = new DirectoryJournal(directory);
      await second.recover();
      expect(await second.extent()).toEqual({ start: 12, end: 16 });
      expect(await second.read(12, 100)).toEqual({ data: Buffer.from("cdef"), offset: 12 });
      expect((await readdir(directory)).toSorted()).toEqual(["output", "segment-12"]);
    },
  );

  it("drops the older of two segments that a crash has left", async () => {
    await write("x");
    await writeFile(join(directory, "segment-0"), "01");
    await writeFile(join(directory, "s"), "23");
    await rename(join(directory, "s"), join(directory, "segment-2"));
    const journal = new DirectoryJournal(directory);
    await journal.recover();
    expect(await journal.extent()).toEqual({ start: 2, end: 5 });
    expect((await readdir(directory)).toSorted()).toEqual(["output", "segment-2"]);
  });
});
