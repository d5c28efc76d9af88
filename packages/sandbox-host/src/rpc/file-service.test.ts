import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { FileEventKind, FileType, type WatchDirectoryResponse } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { reasonOf } from "./client.suite.ts";
import { collect, type FilesRig, type SessionRig, startFilesRig, uploadOf } from "./files.suite.ts";

const KIB = 1024;

let rig: FilesRig;

beforeAll(async () => {
  rig = await startFilesRig();
});

afterAll(async () => {
  await rig[Symbol.asyncDispose]();
});

const SLOW_MS = 60_000;

describe("FileService", () => {
  it(
    "writes, describes, reads, moves and removes a file",
    async () => {
      const { client, sessionId, root } = await rig.open();
      const body = randomBytes(300 * KIB);
      const { entry } = await client.writeFile(uploadOf({ sessionId, path: "a/b.bin", createDirectories: true }, body));
      expect(entry).toMatchObject({ name: "b.bin", path: "/workspace/a/b.bin", type: FileType.FILE, mode: 0o644 });
      expect(readFileSync(join(root, "workspace/a/b.bin")).equals(body)).toBe(true);
      expect((await client.stat({ sessionId, path: "a/b.bin" })).entry).toEqual(entry);
      expect((await collect(client.readFile({ sessionId, path: "/workspace/a/b.bin" }))).equals(body)).toBe(true);
      const part = await collect(client.readFile({ sessionId, path: "a/b.bin", offset: 1000n, limitBytes: 5000n }));
      expect(part.equals(body.subarray(1000, 6000))).toBe(true);
      expect(await collect(client.readFile({ sessionId, path: "a/b.bin", offset: 1n << 40n }))).toHaveLength(0);
      const moved = await client.move({ sessionId, source: "a/b.bin", destination: "/etc/c.bin" });
      expect(moved.entry?.path).toBe("/etc/c.bin");
      expect(await reasonOf(client.stat({ sessionId, path: "a/b.bin" }))).toBe("FILE_NOT_FOUND");
      await client.remove({ sessionId, path: "/etc/c.bin" });
      expect(await reasonOf(client.remove({ sessionId, path: "/etc/c.bin" }))).toBe("FILE_NOT_FOUND");
    },
    SLOW_MS,
  );

  it(
    "writes names that a shell would take apart as they are (D40)",
    async () => {
      const { client, sessionId, root } = await rig.open();
      const path = "$(touch pwned); 'x' \"y\" `z` && rm -rf *\n";
      await client.writeFile(uploadOf({ sessionId, path }, Buffer.from("text")));
      expect(readFileSync(join(root, "workspace", path), "utf8")).toBe("text");
      expect(readdirSync(join(root, "workspace"))).toEqual([path]);
    },
    SLOW_MS,
  );

  it(
    "describes a link and does not follow it, and refuses modes beyond permissions",
    async () => {
      const { client, sessionId, root } = await rig.open();
      symlinkSync("/nowhere", join(root, "workspace/link"));
      const { entry } = await client.stat({ sessionId, path: "link" });
      expect(entry).toMatchObject({ type: FileType.SYMLINK, linkTarget: "/nowhere" });
      const header = { sessionId, path: "x", mode: 0o4755 };
      expect(await reasonOf(client.writeFile(uploadOf(header, Buffer.from("x"))))).toBe("INVALID_ARGUMENT");
      await client.writeFile(uploadOf({ ...header, mode: 0o755 }, Buffer.from("x")));
      expect(statSync(join(root, "workspace/x")).mode & 0o7777).toBe(0o755);
    },
    SLOW_MS,
  );

  it(
    "makes directories, and refuses to replace unless told to",
    async () => {
      const { client, sessionId, root } = await rig.open();
      expect(await reasonOf(client.makeDirectory({ sessionId, path: "a/b" }))).toBe("FILE_NOT_FOUND");
      await client.makeDirectory({ sessionId, path: "a/b", parents: true });
      await client.makeDirectory({ sessionId, path: "a/b", parents: true });
      expect(await reasonOf(client.makeDirectory({ sessionId, path: "a/b" }))).toBe("INVALID_ARGUMENT");
      for (const name of ["one", "two"]) writeFileSync(join(root, "workspace", name), name);
      const onto = { sessionId, source: "one", destination: "two" };
      expect(await reasonOf(client.move(onto))).toBe("INVALID_ARGUMENT");
      expect(readFileSync(join(root, "workspace/two"), "utf8")).toBe("two");
      await client.move({ ...onto, overwrite: true });
      expect(readFileSync(join(root, "workspace/two"), "utf8")).toBe("one");
      await client.move({ sessionId, source: "a", destination: "moved" });
      expect(readdirSync(join(root, "workspace"))).toEqual(["moved", "two"]);
      expect(await reasonOf(client.remove({ sessionId, path: "moved" }))).toBe("INVALID_ARGUMENT");
      await client.remove({ sessionId, path: "moved", recursive: true });
      expect(await reasonOf(client.remove({ sessionId, path: "/", recursive: true }))).toBe("PATH_REFUSED");
      expect(readdirSync(join(root, "workspace"))).toEqual(["two"]);
    },
    SLOW_MS,
  );

  it(
    "lists a directory of 3,000 entries in pages, each once and by name (attack 12)",
    async () => {
      const { client, sessionId, root } = await rig.open();
      mkdirSync(join(root, "workspace/many"));
      for (let n = 0; n < 3_000; n += 1) closeSync(openSync(join(root, "workspace/many", `f${n}`), "w"));
      const names: string[] = [];
      let pageToken = "";
      do {
        const { entries, page } = await client.listDirectory({
          sessionId,
          path: "many",
          page: { pageSize: 700, pageToken },
        });
        expect(entries.length).toBeLessThanOrEqual(700);
        names.push(...entries.map(({ name }) => name));
        pageToken = page?.nextPageToken ?? "";
      } while (pageToken !== "");
      expect(names).toEqual(Array.from({ length: 3_000 }, (_, n) => `f${n}`).sort());
      const foreign = client.listDirectory({ sessionId, path: "/", page: { pageSize: 1, pageToken: "bm9uZQ" } });
      expect(await reasonOf(foreign)).toBe("INVALID_ARGUMENT");
    },
    SLOW_MS,
  );

  it(
    "removes a tree 3,000 directories deep (attack 12)",
    async () => {
      const { client, sessionId, root } = await rig.open();
      // A path so long can only be made step by step.
      const digging = 'for (let i = 0; i < 3000; i += 1) { require("fs").mkdirSync("d"); process.chdir("d"); }';
      execFileSync(process.execPath, ["-e", digging], { cwd: join(root, "workspace") });
      await client.remove({ sessionId, path: "d", recursive: true });
      expect(readdirSync(join(root, "workspace"))).toEqual([]);
    },
    SLOW_MS,
  );

  it(
    "reads no more of a sparse file of 8 TiB than was asked for, and lets go of it with the reader (attack 9)",
    async () => {
      const { client, sessionId, root } = await rig.open();
      writeFileSync(join(root, "workspace/sparse"), "begin");
      truncateSync(join(root, "workspace/sparse"), 8 * KIB ** 4);
      const part = await collect(client.readFile({ sessionId, path: "sparse", limitBytes: BigInt(KIB) }));
      expect([part.length, part.subarray(0, 5).toString()]).toEqual([KIB, "begin"]);
      const leave = new AbortController();
      const stream = client.readFile({ sessionId, path: "sparse" }, { signal: leave.signal })[Symbol.asyncIterator]();
      for (let n = 0; n < 3; n += 1) expect((await stream.next()).done).toBe(false);
      leave.abort();
      await expect(stream.next()).rejects.toThrow();
    },
    SLOW_MS,
  );

  it(
    "answers with what a file held that shrinks under the reader (attack 10)",
    async () => {
      const { client, sessionId, root } = await rig.open();
      const path = join(root, "workspace/shrinking");
      writeFileSync(path, Buffer.alloc(16 * KIB ** 2, "x"));
      let bytes = 0;
      for await (const { data } of client.readFile({ sessionId, path: "shrinking" })) {
        if (bytes === 0) truncateSync(path, KIB);
        bytes += data.length;
      }
      expect(bytes).toBeLessThanOrEqual(16 * KIB ** 2);
      expect(bytes).toBeGreaterThanOrEqual(KIB);
    },
    SLOW_MS,
  );

  it(
    "does a write once for its key, reads a replay to its end, and refuses another body",
    async () => {
      const { client, sessionId, root } = await rig.open();
      const header = { sessionId, path: "once", idempotencyKey: "k" };
      const first = await client.writeFile(uploadOf(header, Buffer.from("one")));
      writeFileSync(join(root, "workspace/once"), "changed since");
      expect(await client.writeFile(uploadOf(header, Buffer.from("one")))).toEqual(first);
      expect(readFileSync(join(root, "workspace/once"), "utf8")).toBe("changed since");
      expect(await reasonOf(client.writeFile(uploadOf(header, Buffer.from("two"))))).toBe("IDEMPOTENCY_CONFLICT");
      const remove = { sessionId, path: "once", idempotencyKey: "r" };
      await client.remove(remove);
      await client.remove(remove);
      expect(await reasonOf(client.remove({ ...remove, path: "other" }))).toBe("IDEMPOTENCY_CONFLICT");
    },
    SLOW_MS,
  );

  it(
    "leaves nothing of an upload whose client goes away",
    async () => {
      const { client, sessionId, session, root } = await rig.open();
      const leave = new AbortController();
      const sent = Promise.withResolvers<null>();
      async function* stalling() {
        yield* uploadOf({ sessionId, path: "half" }, Buffer.alloc(KIB));
        sent.resolve(null);
        await new Promise(() => undefined);
      }
      const writing = reasonOf(client.writeFile(stalling(), { signal: leave.signal }));
      await sent.promise;
      leave.abort();
      expect(await writing).toBe("CANCELLED");
      await session.gate.drained({ timeoutMs: 5000, signal: new AbortController().signal });
      expect(readdirSync(join(root, "workspace"))).toEqual([]);
    },
    SLOW_MS,
  );

  it(
    "reads while the session is paused, and changes nothing then or in another generation",
    async () => {
      const { client, sessionId, session, root } = await rig.open();
      writeFileSync(join(root, "workspace/a"), "a");
      const old = { sessionId, path: "a", expectedGeneration: session.row.generation + 1 };
      expect(await reasonOf(client.remove(old))).toBe("GENERATION_CHANGED");
      const pause = { expectedGeneration: undefined, late: "refuse", drainTimeoutMs: 0, cause: "request" } as const;
      await rig.test.host.pauseSession(session, pause, { signal: new AbortController().signal });
      expect((await collect(client.readFile({ sessionId, path: "a" }))).toString()).toBe("a");
      expect((await client.listDirectory({ sessionId, path: "." })).entries).toHaveLength(1);
      expect(await reasonOf(client.remove({ sessionId, path: "a" }))).toBe("SESSION_PAUSED");
      expect(await reasonOf(client.writeFile(uploadOf({ sessionId, path: "b" }, Buffer.from("b"))))).toBe(
        "SESSION_PAUSED",
      );
    },
    SLOW_MS,
  );

  it(
    "unpacks an archive once for its key, and packs what it unpacked",
    async () => {
      const { client, sessionId, root } = await rig.open();
      mkdirSync(join(root, "workspace/from/sub"), { recursive: true });
      writeFileSync(join(root, "workspace/from/sub/a"), "a");
      symlinkSync("sub/a", join(root, "workspace/from/link"));
      const pieces: Uint8Array[] = [];
      for await (const { data } of client.downloadArchive({ sessionId, path: "from" })) pieces.push(data);
      const archive = Buffer.concat(pieces);
      const header = { sessionId, path: "to/new", idempotencyKey: "k" };
      expect(await client.uploadArchive(uploadOf(header, archive))).toMatchObject({ entries: 3, bytes: 1n });
      expect(readFileSync(join(root, "workspace/to/new/link"), "utf8")).toBe("a");
      await client.remove({ sessionId, path: "to", recursive: true });
      expect(await client.uploadArchive(uploadOf(header, archive))).toMatchObject({ entries: 3 });
      expect(readdirSync(join(root, "workspace"))).toEqual(["from"]);
      const other = uploadOf(header, Buffer.concat([archive, Buffer.alloc(512)]));
      expect(await reasonOf(client.uploadArchive(other))).toBe("IDEMPOTENCY_CONFLICT");
      expect(await reasonOf(collectAll(client.downloadArchive({ sessionId, path: "missing" })))).toBe("FILE_NOT_FOUND");
    },
    SLOW_MS,
  );

  it(
    "is not held up by 64 FIFOs (attack 7)",
    async () => {
      const { client, sessionId, root } = await rig.open();
      execFileSync("mkfifo", [join(root, "workspace/fifo")]);
      await client.stat({ sessionId, path: "fifo" });
      const reads = Array.from({ length: 64 }, () => reasonOf(collect(client.readFile({ sessionId, path: "fifo" }))));
      expect(new Set(await Promise.all(reads))).toEqual(new Set(["PATH_REFUSED"]));
      expect((await client.stat({ sessionId, path: "fifo" })).entry?.type).toBe(FileType.OTHER);
    },
    SLOW_MS,
  );
});

async function collectAll(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

function watch({ client, sessionId }: SessionRig, path: string, options: { readonly recursive?: boolean } = {}) {
  const leave = new AbortController();
  const stream = client
    .watchDirectory({ sessionId, path, ...options }, { signal: leave.signal })
    [Symbol.asyncIterator]();
  const next = async (): Promise<string> => {
    const { value } = (await stream.next()) as { readonly value: WatchDirectoryResponse };
    return [FileEventKind[value.kind], value.path, value.oldPath].filter((one) => one !== "").join(" ");
  };
  /** Waits for an event, with whatever comes before it passed over. */
  const until = async (wanted: string): Promise<void> => {
    while ((await next()) !== wanted);
  };
  return { leave, stream, next, until };
}

async function nextNot(next: () => Promise<string>, passed: RegExp): Promise<string> {
  for (;;) {
    const event = await next();
    if (!passed.test(event)) return event;
  }
}

describe("WatchDirectory", () => {
  it(
    "says that it has started, and then what happens, in directories that are new too",
    async () => {
      const session = await rig.open();
      const work = join(session.root, "workspace");
      const { next, until, leave, stream } = watch(session, ".", { recursive: true });
      expect(await next()).toBe("STARTED /workspace");
      writeFileSync(join(work, "a"), "one");
      await until("CREATED /workspace/a");
      writeFileSync(join(work, "a"), "two");
      await until("MODIFIED /workspace/a");
      renameSync(join(work, "a"), join(work, "b"));
      await until("RENAMED /workspace/b /workspace/a");
      mkdirSync(join(work, "new/deep"), { recursive: true });
      await until("CREATED /workspace/new/deep");
      writeFileSync(join(work, "new/deep/file"), "x");
      await until("CREATED /workspace/new/deep/file");
      await session.client.writeFile(uploadOf({ sessionId: session.sessionId, path: "b" }, Buffer.from("whole")));
      expect(await nextNot(next, /new/)).toBe("MODIFIED /workspace/b");
      rmSync(join(work, "b"));
      await until("REMOVED /workspace/b");
      leave.abort();
      await expect(stream.next()).rejects.toThrow();
    },
    SLOW_MS,
  );

  it(
    "does not look below where it was not asked to, and refuses what is no directory",
    async () => {
      const session = await rig.open();
      const work = join(session.root, "workspace");
      mkdirSync(join(work, "below"));
      writeFileSync(join(work, "file"), "x");
      const { next, until, leave } = watch(session, ".");
      expect(await next()).toBe("STARTED /workspace");
      writeFileSync(join(work, "below/unseen"), "x");
      writeFileSync(join(work, "seen"), "x");
      expect(await nextNot(next, /MODIFIED \/workspace\/below$/)).toBe("CREATED /workspace/seen");
      rmSync(join(work, "seen"));
      await until("REMOVED /workspace/seen");
      leave.abort();
      const { stream } = watch(session, "file");
      expect(await reasonOf(stream.next())).toBe("FILE_NOT_FOUND");
    },
    SLOW_MS,
  );

  it(
    "ends with the session's generation, and with the session",
    async () => {
      const session = await rig.open();
      const { next, stream } = watch(session, ".");
      expect(await next()).toBe("STARTED /workspace");
      await rig.test.host.destroySession(session.session);
      expect(await reasonOf(stream.next())).toBe("SESSION_DESTROYING");
    },
    SLOW_MS,
  );
});
