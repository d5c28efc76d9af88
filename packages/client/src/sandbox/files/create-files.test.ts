import { describe, expect, it } from "@jest/globals";
import { openRoom, type Room } from "../../fake/room.suite.ts";
import type { FileEvent } from "./sandbox-files.ts";

async function text(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all).toString();
}

const put = ({ inside }: Room, path: string, content: string): void => {
  inside.files.set(path, { content: Buffer.from(content), mode: 0o644 });
};

describe("reading a file", () => {
  it("goes on where it was after the connection broke, also within a part", async () => {
    using room = await openRoom();
    put(room, "a", "0123456789");
    room.inside.breakAfterBytes = [1, 1];
    expect(await text(room.sandbox.files.readStream("a"))).toBe("0123456789");
    room.inside.breakAfterBytes = [1];
    expect(await room.sandbox.files.readText("a", { offset: 2, limitBytes: 5 })).toBe("23456");
    expect(room.harness.sent("ReadFile").at(-1)).toMatchObject({ offset: 4n, limitBytes: 3n });
  });

  it("fails with FILE_CHANGED where the file is another one by then", async () => {
    using room = await openRoom();
    put(room, "a", "0123456789");
    room.inside.breakAfterBytes = [1];
    const reading = (async () => {
      for await (const _piece of room.sandbox.files.readStream("a")) put(room, "a", "01234567890");
    })();
    await expect(reading).rejects.toMatchObject({ reason: "FILE_CHANGED", metadata: { path: "a" } });
  });

  it("tells a missing file from others", async () => {
    using room = await openRoom();
    put(room, "a", "x");
    expect(await room.sandbox.files.exists("a")).toBe(true);
    expect(await room.sandbox.files.exists("b")).toBe(false);
    await expect(room.sandbox.files.read("b")).rejects.toMatchObject({ reason: "FILE_NOT_FOUND" });
  });
});

describe("writing a file", () => {
  it("sends text again under its key where the answer got lost", async () => {
    using room = await openRoom();
    room.harness.faults.set("WriteFile", ["lost"]);
    await room.sandbox.files.write("a", "text", { mode: 0o600 });
    expect(room.inside.files.get("a")?.content.toString()).toBe("text");
    const keys = room.harness.sent("WriteFile").map(({ part }) => {
      const { value } = part as { readonly value: { readonly idempotencyKey: string } };
      return value.idempotencyKey;
    });
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
  });

  it("does not send a stream a second time, of which a part is gone", async () => {
    using room = await openRoom();
    room.harness.faults.set("WriteFile", ["lost"]);
    const content = (async function* () {
      yield await Promise.resolve(Buffer.from("once"));
    })();
    await expect(room.sandbox.files.write("a", content)).rejects.toMatchObject({ reason: "HOST_UNREACHABLE" });
    expect(room.harness.sent("WriteFile")).toHaveLength(1);
  });
});

describe("watching files", () => {
  it("says by overflow that it had to begin again", async () => {
    using room = await openRoom();
    room.inside.breakAfterBytes = [1];
    const seen: FileEvent["kind"][] = [];
    for await (const { kind } of room.sandbox.files.watch("/workspace")) {
      seen.push(kind);
      if (kind === "created") break;
    }
    expect(seen).toEqual(["started", "overflow", "created"]);
  });
});

describe("downloading an archive", () => {
  it("begins again as long as nothing was handed out, and fails after that", async () => {
    using room = await openRoom();
    room.inside.archives.set("/workspace", Buffer.from("tar"));
    room.harness.faults.set("DownloadArchive", [{ cutAfter: 0 }]);
    expect(await text(room.sandbox.files.download("/workspace"))).toBe("tar");
    room.harness.faults.set("DownloadArchive", [{ cutAfter: 1 }]);
    await expect(text(room.sandbox.files.download("/workspace"))).rejects.toMatchObject({ reason: "HOST_UNREACHABLE" });
  });
});
