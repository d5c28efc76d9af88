import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { FileEventKind, type WatchDirectoryResponse } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { reasonOf } from "./client.suite.ts";
import { type FilesRig, type SessionRig, startFilesRig, uploadOf } from "./files.suite.ts";

const SLOW_MS = 60_000;
let rig: FilesRig;

beforeAll(async () => {
  rig = await startFilesRig();
});

afterAll(async () => {
  await rig[Symbol.asyncDispose]();
});

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

async function nextNot(next: () => Promise<string>, passed: RegExp): Promise<string> {
  for (;;) {
    const event = await next();
    if (!passed.test(event)) return event;
  }
}
