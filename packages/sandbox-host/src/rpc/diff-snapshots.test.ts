import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, jest } from "@jest/globals";
import type { AccessVerb } from "@turnbox/core";
import { fromConnectError } from "@turnbox/rpc/wire";
import { ChangeKind, SnapshotService } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { SIGNAL, startTestHost, type TestHost } from "../compose.suite.ts";
import { accessTo } from "./client.suite.ts";

const serve = ({ host }: TestHost) => accessTo(host).client(SnapshotService);

async function prepare(test: TestHost) {
  const session = await test.create({ sessionId: "s" });
  const { path } = await test.storage.mountHead(session.head, { signal: SIGNAL });
  const client = serve(test);
  const { snapshot } = await client.createSnapshot({ sessionId: "s", name: "before" });
  mkdirSync(join(path, "workspace"), { recursive: true });
  return {
    client,
    at: (name: string) => join(path, "workspace", name),
    from: { sessionId: "s", fromSnapshotId: snapshot?.snapshotId ?? "" },
  };
}

const refusal = (call: Promise<unknown>) => call.then(() => undefined, fromConnectError);

// Each comparison starts a process.
jest.setTimeout(60_000);

describe("DiffSnapshots", () => {
  it("gives all changes once, page by page, also while the session goes on", async () => {
    await using test = await startTestHost();
    const { client, at, from } = await prepare(test);
    for (let count = 0; count < 25; count += 1) writeFileSync(at(`f${String(count).padStart(2, "0")}`), "x");
    const paths: string[] = [];
    let pageToken = "";
    do {
      const { changes, page } = await client.diffSnapshots({
        ...from,
        path: "/workspace/",
        page: { pageSize: 10, pageToken },
      });
      paths.push(...changes.map(({ path }) => path));
      pageToken = page?.nextPageToken ?? "";
      writeFileSync(at(`later${paths.length}`), "x");
    } while (pageToken !== "");
    const files = paths.filter((path) => path !== "/workspace");
    expect(files).toEqual(Array.from({ length: 25 }, (_, count) => `/workspace/f${String(count).padStart(2, "0")}`));
  });

  it("shows contents only to a token that allows files", async () => {
    await using test = await startTestHost();
    const { at, from } = await prepare(test);
    writeFileSync(at("secret"), "canary\n");
    const access = accessTo(test.host);
    const as = (verbs: readonly AccessVerb[]) =>
      access.client(SnapshotService, access.sign({ tenant: "default", sandbox: "s", verbs }));
    expect(await refusal(as(["read"]).diffSnapshots({ ...from, text: true }))).toMatchObject({
      reason: "PERMISSION_DENIED",
    });
    const { changes } = await as(["read"]).diffSnapshots(from);
    expect(changes.map(({ path, unifiedDiff }) => [path, unifiedDiff])).toContainEqual(["/workspace/secret", ""]);
    const shown = await as(["read", "files"]).diffSnapshots({ ...from, text: true });
    expect(shown.changes.map(({ unifiedDiff }) => unifiedDiff).join()).toContain("canary");
  });

  it("ends a page where a message would become too large", async () => {
    await using test = await startTestHost();
    const { client, at, from } = await prepare(test);
    for (let count = 0; count < 12; count += 1) writeFileSync(at(`f${count}`), `${"x".repeat(1023)}\n`.repeat(1000));
    const request = { ...from, path: "/workspace", text: true, maxTextBytes: 16n * 1024n * 1024n };
    const first = await client.diffSnapshots(request);
    expect(first.changes.length).toBeGreaterThan(2);
    expect(first.changes.length).toBeLessThan(6);
    expect(first.changes.at(-1)).toMatchObject({
      kind: ChangeKind.ADDED,
      newSizeBytes: 1_024_000n,
      diffTruncated: false,
    });
    const next = await client.diffSnapshots({
      ...request,
      page: { pageSize: 0, pageToken: first.page?.nextPageToken ?? "" },
    });
    expect(next.changes[0]?.path).not.toBe(first.changes.at(-1)?.path);
  });

  it("refuses what breaks a rule, naming the field", async () => {
    await using test = await startTestHost();
    const { client, from } = await prepare(test);
    const fieldOf = async (more: Parameters<typeof client.diffSnapshots>[0]) => {
      const error = await refusal(client.diffSnapshots({ ...from, ...more }));
      return [error?.reason, error?.metadata["field"]];
    };
    for (const path of ["workspace", "/a/../b", "/a\0b", "/.."]) {
      expect(await fieldOf({ path })).toEqual(["INVALID_ARGUMENT", "path"]);
    }
    expect(await fieldOf({ fromSnapshotId: "" })).toEqual(["INVALID_ARGUMENT", "from_snapshot_id"]);
    expect(await fieldOf({ text: true, maxTextBytes: 2n ** 40n })).toEqual(["INVALID_ARGUMENT", "max_text_bytes"]);
    for (const pageToken of ["x", "x.y", "."]) {
      expect(await fieldOf({ page: { pageSize: 0, pageToken } })).toEqual(["INVALID_ARGUMENT", "page.page_token"]);
    }
    expect((await fieldOf({ sessionId: "nobody" }))[0]).toBe("SESSION_NOT_FOUND");
    expect((await fieldOf({ toSnapshotId: "snap-nothing" }))[0]).toBe("SNAPSHOT_NOT_FOUND");
  });
});
