import { execFileSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { createChildCommandRunner } from "@turnbox/core";
import { fromConnectError } from "@turnbox/rpc/wire";
import { unpackDirectory } from "../../packages/cli/src/transfer/local-archive.ts";
import { archiveOf, type CraftedEntry } from "../support/archive-of.ts";
import { bytesOf, uploadOf } from "../support/file-client.ts";
import { type FileRoom, openFileRoom } from "../support/file-room.ts";
import { IS_FULL } from "../support/random.ts";

const MIB = 1024 ** 2;
const MEMBERS = 1_000_000;
const LIMIT_MS = 1_800_000;

let room: FileRoom;
let scratch: string;
beforeAll(async () => {
  room = await openFileRoom();
  scratch = mkdtempSync(join(tmpdir(), "turnbox-archives-"));
}, 120_000);
afterAll(async () => {
  rmSync(scratch, { recursive: true, force: true });
  await room[Symbol.asyncDispose]();
}, 120_000);

/** `done`, or the reason of the refusal. */
async function upload(archive: Buffer, path = "to"): Promise<string> {
  const { files, sessionId } = room;
  return await files.uploadArchive(uploadOf({ sessionId, path }, archive, MIB)).then(
    () => "done",
    (thrown: unknown) => fromConnectError(thrown).reason,
  );
}

const target = (): string => join(room.canary.directory, "secret");

describe("archives that a caller uploads, on a real host", () => {
  const link = (linkpath: string): CraftedEntry => ({ path: "l", type: "SymbolicLink", linkpath });
  const HOSTILE: Readonly<Record<string, () => readonly CraftedEntry[]>> = {
    "dots at the start": () => [{ path: "../escaped", text: "x" }],
    "dots in the middle": () => [{ path: "a/../../escaped", text: "x" }],
    "dots to the canary": () => [{ path: `../../../../../../../../../..${target()}`, text: "x" }],
    "an absolute name": () => [{ path: target(), text: "x" }],
    "a link and a write through it": () => [link(room.canary.directory), { path: "l/secret", text: "x" }],
    "a link and a new file through it": () => [link(room.canary.directory), { path: "l/new", text: "x" }],
    "a link by dots and a directory through it": () => [
      link(`../../../../../../../../../..${room.canary.directory}`),
      { path: "l/deep/", type: "Directory" },
    ],
    "a hard link out": () => [{ path: "hard", type: "Link", linkpath: target() }],
    "a hard link out by dots": () => [{ path: "hard", type: "Link", linkpath: `../../../../..${target()}` }],
    "a hard link through a link": () => [
      link(room.canary.directory),
      { path: "hard", type: "Link", linkpath: "l/secret" },
    ],
    "a character device": () => [{ path: "null", type: "CharacterDevice" }],
    "a block device": () => [{ path: "disk", type: "BlockDevice" }],
    "a FIFO": () => [{ path: "fifo", type: "FIFO" }],
    "a name twice": () => [
      { path: "x", text: "1" },
      { path: "./x", text: "2" },
    ],
    "more bytes than any archive may have": () => [{ path: "huge", sizeBytes: 65 * 1024 ** 3 - 1 }],
  };

  it.each(Object.keys(HOSTILE))(
    "attack 14: %s is refused, plain and by gzip, and nothing outside is written",
    async (name) => {
      const archive = archiveOf(...(HOSTILE[name]?.() ?? []));
      for (const bytes of [archive, gzipSync(archive)]) {
        await room.agent("rm -rf to");
        expect(["PATH_REFUSED", "INVALID_ARGUMENT"]).toContain(await upload(bytes));
        room.canary.expectUntouched();
      }
      expect(await room.agent("find / -xdev -name escaped 2>/dev/null")).toBe("");
      const legal = archiveOf({ path: "a/", type: "Directory" }, { path: "a/legal", text: "legal" }, link("a/legal"));
      expect([await upload(legal), await upload(gzipSync(legal))]).toEqual(["done", "done"]);
      expect(await room.agent("cat to/l")).toBe("legal");
    },
    60_000,
  );

  it("attack 14: a link of the agent in the place of a directory is not written through", async () => {
    const { agent, canary } = room;
    await agent(`rm -rf to; mkdir to; ln -s ${canary.directory} to/l; ln -s ${canary.directory} whole`);
    expect(await upload(archiveOf({ path: "l/secret", text: "x" }))).toBe("PATH_REFUSED");
    // Where the caller itself names a link, it is followed inside, where nothing of the machine is.
    await upload(archiveOf({ path: "secret", text: "inner" }), "whole");
    canary.expectUntouched();
    expect(
      await agent(`rm -f to/l; cat ${canary.directory}/secret 2>/dev/null; rm -rf ${canary.directory}`),
    ).not.toContain(canary.secret);
  }, 60_000);

  it("attack 14: a bomb of 42 kB is stopped by its ratio, long before it is unpacked", async () => {
    const bomb = gzipSync(archiveOf({ path: "bomb", text: Buffer.alloc(42 * MIB) }), { level: 9 });
    expect(bomb.length).toBeLessThan(44_000);
    expect(await upload(bomb)).toBe("INVALID_ARGUMENT");
    const written = Number(await room.agent("cat to/bomb 2>/dev/null | wc -c"));
    expect(written).toBeLessThan(32 * MIB);
    // A stream of zeros behind a claim of 4 GiB goes the same way.
    const claimed = archiveOf({ path: "claim", text: Buffer.alloc(16 * MIB), sizeBytes: 4 * 1024 ** 3 });
    expect(await upload(gzipSync(claimed))).toBe("INVALID_ARGUMENT");
    const text = Array.from({ length: 100_000 }, (_, line) => `${line}: ordinary text\n`).join("");
    expect(await upload(gzipSync(archiveOf({ path: "text", text })))).toBe("done");
  }, 60_000);

  // So many take minutes, whatever they are. That there is a bound, a test beside the code holds in the short form.
  if (IS_FULL) {
    it(
      `attack 14: ${MEMBERS} members are too many`,
      async () => {
        const { files, sessionId } = room;
        const block = archiveOf({ path: "./", type: "Directory" }).subarray(0, 512);
        const piece = new Uint8Array(Buffer.concat(Array.from({ length: 1000 }, () => block)));
        async function* stream() {
          yield { part: { case: "header", value: { sessionId, path: "many" } } as const };
          for (let sent = 0; sent < MEMBERS; sent += 1000) yield { part: { case: "data", value: piece } as const };
        }
        const outcome = files.uploadArchive(stream(), { signal: AbortSignal.timeout(LIMIT_MS) });
        await expect(outcome).rejects.toThrow("more than");
      },
      LIMIT_MS,
    );
  }
});

describe("archives that a caller downloads, on a real host", () => {
  /** As the command line does it. */
  const unpack = (archive: AsyncIterable<Uint8Array>, path: string): Promise<void> =>
    unpackDirectory(archive, { runner: createChildCommandRunner(), path, signal: AbortSignal.timeout(60_000) });
  async function* pieces(path: string): AsyncIterable<Uint8Array> {
    const { files, sessionId } = room;
    for await (const { data } of files.downloadArchive({ sessionId, path })) yield data;
  }

  it("attack 15: links to the machine's files stay links, and nothing of what they lead to comes along", async () => {
    const { agent, canary, files, sessionId } = room;
    await agent(
      `mkdir -p from/d; cd from; echo text > d/file; ln -s ${target()} leaf; ln -s ${canary.directory} directory; ln -s ../../../../../../../..${target()} dots`,
    );
    const archive = await bytesOf(files.downloadArchive({ sessionId, path: "from" }));
    expect(archive.includes(canary.secret)).toBe(false);
    const names = execFileSync("tar", ["-tvf", "-"], { input: archive, encoding: "utf8" });
    expect(names).toContain(`leaf -> ${target()}`);
    const to = join(scratch, "first");
    mkdirSync(to);
    await unpack(pieces("from"), to);
    expect(readdirSync(to).sort()).toEqual(["d", "directory", "dots", "leaf"]);
    expect(readFileSync(join(to, "d/file"), "utf8")).toBe("text\n");
    for (const name of ["leaf", "directory", "dots"]) expect(lstatSync(join(to, name)).isSymbolicLink()).toBe(true);
    expect(readlinkSync(join(to, "directory"))).toBe(canary.directory);
    canary.expectUntouched();
  }, 60_000);

  it("attack 15: a second download writes through no link that the first one brought", async () => {
    const { agent, canary } = room;
    await agent(`mkdir -p turned; ln -s ${canary.directory} turned/inner; ln -s ${target()} turned/leaf`);
    const to = join(scratch, "second");
    mkdirSync(to);
    await unpack(pieces("turned"), to);
    expect(lstatSync(join(to, "inner")).isSymbolicLink()).toBe(true);
    await agent(
      "cd turned; rm inner leaf; mkdir inner; echo mine > inner/secret; echo mine > leaf; echo new > inner/new",
    );
    await unpack(pieces("turned"), to);
    canary.expectUntouched();
    expect(readFileSync(join(to, "inner/secret"), "utf8")).toBe("mine\n");
    expect(lstatSync(join(to, "leaf")).isFile()).toBe(true);
  }, 60_000);
});
