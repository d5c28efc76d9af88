import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { systemClock } from "@turnbox/core";
import { FrameReader } from "./frame-reader.ts";
import { type Frame, OutputJournal, type SlowReader } from "./journal.ts";
import type { Offsets } from "./segment.ts";

const MiB = 1024 * 1024;

let directory: string;
const journals: OutputJournal[] = [];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-frames-"));
});
afterEach(async () => {
  for (const journal of journals.splice(0)) await journal.remove();
  await rm(directory, { recursive: true });
});

function createJournal(maxBytes = Number.POSITIVE_INFINITY, disk: Promise<void> = Promise.resolve()): OutputJournal {
  let usedBytes = 0;
  const journal: OutputJournal = new OutputJournal({
    pathOf: (segment) => join(directory, String(segment)),
    makeRoom: async (bytes) => {
      await disk;
      while (usedBytes + bytes > maxBytes) {
        const freed = await journal.dropOldest();
        if (freed === 0) return false;
        usedBytes -= freed;
      }
      usedBytes += bytes;
      return true;
    },
  });
  journals.push(journal);
  return journal;
}

const readerOf = (journal: OutputJournal, more: { from?: Offsets; slowReader?: SlowReader } = {}) => {
  const reader = new FrameReader({ clock: systemClock, slowReader: "wait", ...more });
  reader.bind(journal);
  return reader;
};

async function readAll(frames: AsyncIterable<Frame>): Promise<string[]> {
  const seen: string[] = [];
  for await (const { stream, data, offset, droppedBytes } of frames) {
    const text = Buffer.from(data).toString();
    seen.push(`${stream}@${offset}:${text}${droppedBytes === 0 ? "" : `(${droppedBytes} lost)`}`);
  }
  return seen;
}

/** Bytes that state their own offset. */
function pattern(offset: number, length: number): Buffer {
  const data = Buffer.alloc(length);
  for (let at = 0; at + 4 <= length; at += 4) data.writeUInt32LE(offset + at, at);
  return data;
}

async function collect(frames: AsyncIterable<Frame>): Promise<{ readonly bytes: Buffer; readonly lost: number }> {
  const parts: Uint8Array[] = [];
  let lost = 0;
  for await (const { data, droppedBytes } of frames) {
    parts.push(data);
    lost += droppedBytes;
  }
  return { bytes: Buffer.concat(parts), lost };
}

const add = (journal: OutputJournal, stream: "stdout" | "stderr", text: string) =>
  journal.append({ stream, data: Buffer.from(text) });

async function until(holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadlineMs = performance.now() + 10_000;
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error("not in time");
    await tick();
  }
}

/** Full segments are saved while the tool goes on. */
const isSaved = (journal: OutputJournal) => until(() => journal.memoryBytes < 2 * MiB);

const tick = () => new Promise((resolve) => void setImmediate(resolve));

describe("FrameReader", () => {
  it("joins neighbouring pieces of one stream and keeps the order between streams", async () => {
    const journal = createJournal();
    const reading = readAll(readerOf(journal).frames());
    await add(journal, "stdout", "a");
    await add(journal, "stdout", "b");
    await add(journal, "stderr", "x");
    await add(journal, "stdout", "c");
    journal.end();
    expect(await reading).toEqual(["stdout@0:ab", "stderr@0:x", "stdout@2:c"]);
  });

  it("gets a small piece without waiting for more", async () => {
    const journal = createJournal();
    await add(journal, "stdout", "a");
    const iterator = readerOf(journal).frames()[Symbol.asyncIterator]();
    expect(Buffer.from(((await iterator.next()).value as Frame).data).toString()).toBe("a");
    journal.end();
    expect((await iterator.next()).done).toBe(true);
  });

  it("makes the tool wait while it is a megabyte behind, and lets it go on at once when it is gone", async () => {
    const journal = createJournal();
    const reader = readerOf(journal);
    let released = false;
    const pushing = journal.append({ stream: "stdout", data: new Uint8Array(MiB) }).then(() => {
      released = true;
    });
    for (let turn = 0; turn < 20; turn += 1) await tick();
    expect(released).toBe(false);
    reader.close();
    await pushing;
    await add(journal, "stdout", "not read");
    expect(await readAll(reader.frames())).toEqual([]);
  });

  it("that stalls does not hold up another one", async () => {
    const journal = createJournal();
    readerOf(journal);
    const reading = collect(readerOf(journal).frames());
    for (let at = 0; at < 8; at += 1) await journal.append({ stream: "stdout", data: pattern(at * MiB, MiB) });
    journal.end();
    expect((await reading).bytes.equals(pattern(0, 8 * MiB))).toBe(true);
  });

  it("lets the tool be ahead of the disk by four segments and no more", async () => {
    const disk = Promise.withResolvers<void>();
    const journal = createJournal(Number.POSITIVE_INFINITY, disk.promise);
    for (let at = 0; at < 4; at += 1) await journal.append({ stream: "stdout", data: pattern(at * MiB, MiB) });
    let released = false;
    const fifth = journal.append({ stream: "stdout", data: pattern(4 * MiB, MiB) }).then(() => {
      released = true;
    });
    for (let turn = 0; turn < 20; turn += 1) await tick();
    expect(released).toBe(false);
    disk.resolve();
    await fifth;
    journal.end();
    expect((await collect(readerOf(journal).frames())).bytes.equals(pattern(0, 5 * MiB))).toBe(true);
    await journal.remove();
  });

  it("leaves no file behind if its output is removed while it is being saved", async () => {
    const disk = Promise.withResolvers<void>();
    const journal = createJournal(Number.POSITIVE_INFINITY, disk.promise);
    for (let at = 0; at < 4; at += 1) await journal.append({ stream: "stdout", data: new Uint8Array(MiB) });
    journal.end();
    await journal.remove();
    disk.resolve();
    for (let turn = 0; turn < 20; turn += 1) await tick();
    expect(await readdir(directory)).toEqual([]);
  });

  it("begins at its offsets, also long after the end, and gets every byte from there", async () => {
    const journal = createJournal();
    for (let at = 0; at < 6; at += 1) await journal.append({ stream: "stdout", data: pattern(at * MiB, MiB) });
    await add(journal, "stderr", "0123");
    journal.end();
    const from = { stdout: 3 * MiB + 17, stderr: 2 };
    const frames: Frame[] = [];
    for await (const frame of readerOf(journal, { from }).frames()) frames.push(frame);
    const stdout = Buffer.concat(frames.filter(({ stream }) => stream === "stdout").map(({ data }) => data));
    expect(stdout.equals(pattern(0, 6 * MiB).subarray(from.stdout))).toBe(true);
    expect(frames.filter(({ stream }) => stream === "stderr").map(({ data }) => Buffer.from(data).toString())).toEqual([
      "23",
    ]);
    await isSaved(journal);
    await journal.remove();
    expect(await readdir(directory)).toEqual([]);
  });

  it("that drops never makes the tool wait, and counts every byte that it does not get", async () => {
    const journal = createJournal();
    const reader = readerOf(journal, { slowReader: "drop" });
    for (let at = 0; at < 16; at += 1) await journal.append({ stream: "stdout", data: new Uint8Array(MiB / 2) });
    await add(journal, "stderr", "x");
    journal.end();
    const { bytes, lost } = await collect(reader.frames());
    expect(lost).toBeGreaterThan(0);
    expect(bytes.length + lost).toBe(8 * MiB + 1);
  });

  it("counts what is gone when there was no room for all output", async () => {
    const journal = createJournal(2 * MiB);
    for (let at = 0; at < 8; at += 1) await journal.append({ stream: "stdout", data: pattern(at * MiB, MiB) });
    await add(journal, "stdout", "end");
    journal.end();
    await isSaved(journal);
    await until(async () => (await readdir(directory)).length === 2);
    const { bytes, lost } = await collect(readerOf(journal).frames());
    expect(lost).toBe(6 * MiB);
    expect(bytes.subarray(0, 2 * MiB).equals(pattern(6 * MiB, 2 * MiB))).toBe(true);
    expect((await readdir(directory)).length).toBe(2);
  });

  it("gets a frame without bytes while a call is silent, and ends if no output comes", async () => {
    const clock = { ...systemClock, sleep: () => Promise.resolve() };
    const reader = new FrameReader({ clock, slowReader: "wait" });
    const iterator = reader.frames()[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toEqual({
      stream: "stdout",
      data: new Uint8Array(),
      offset: 0,
      droppedBytes: 0,
    });
    reader.finish();
    expect((await iterator.next()).done).toBe(true);
  });
});
