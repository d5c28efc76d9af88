import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { createLog, parseConfig } from "@turnbox/core";
import { HostCommandRunner } from "../../system/command/host-command-runner.ts";
import { SIGNAL } from "../../compose.suite.ts";
import { type ComposedHost, composeHost } from "../../compose.ts";
import { composeBackends } from "../../compose-backends.ts";
import { HOST_SETTINGS } from "../../config.ts";
import { FakeNetwork } from "../../network/fake/fake-network.ts";
import { createFakeMachine, createFakeRuntime } from "../../runtime/fake/fake-runtime.ts";
import type { Session } from "../../session/session.ts";
import type { Storage } from "../../storage/storage.ts";
import type { View } from "../../storage/views.ts";
import { createCompareInChild, type SizedChange } from "./compare-in-child.ts";
import type { DiffRequest } from "./diff-snapshots.ts";

jest.setTimeout(120_000);

const call = { signal: SIGNAL };
const TEXT = "a line that is long enough to be told from another\n";

/** A host whose files are on ZFS; what its sessions do, the test does in their files. */
const runner = new HostCommandRunner();
let home = "";
let composed: ComposedHost | undefined;
let storage: Storage;
beforeAll(async () => {
  home = await realpath(await mkdtemp(join(tmpdir(), "turnbox-diff-")));
  for (const name of ["busybox", "bash"])
    await writeFile(join(home, name), "#!/bin/sh\necho sh\necho busybox\n", { mode: 0o755 });
  const config = { ...parseConfig(HOST_SETTINGS, { env: {} }), storageBackend: "zfs", poolSize: 1024 ** 3 } as const;
  const path = process.env["PATH"] ?? "";
  const options = { config, dataDirectory: home, path };
  const { workers, ...made } = await composeBackends(options, runner);
  ({ storage } = made);
  const runtime = createFakeRuntime({ machine: createFakeMachine(), programOf: () => undefined });
  composed = await composeHost(
    {
      ...options,
      log: createLog({ name: "test", level: "silent", to: "stderr" }),
      backends: () => ({ storage, runtime, network: new FakeNetwork(), workers }),
      miniSources: { busybox: join(home, "busybox"), bash: join(home, "bash") },
    },
    call,
  );
});
afterAll(async () => {
  await composed?.[Symbol.asyncDispose]();
  await storage.destroyAll(call);
  await runner[Symbol.asyncDispose]();
  await rm(home, { recursive: true, force: true });
});

const host = () => {
  if (composed === undefined) throw new Error("the host did not start");
  return composed.host;
};

async function newSession() {
  const session = await host().createSession(
    {
      tenant: "default",
      idempotencyKey: "",
      payload: "",
      sessionId: "",
      base: "mini",
      quotaBytes: null,
      labels: {},
      env: {},
      limits: {},
      time: { ttlMs: null, idleTimeoutMs: null, onTimeout: "destroy" },
      ports: [],
      networkPolicy: null,
    },
    call,
  );
  return { session, at: await filesOf(session) };
}

/** The path of the session's files now. */
async function filesOf(session: Session): Promise<(name: string) => string> {
  const { path } = await storage.mountHead(session.head, call);
  mkdirSync(join(path, "w"), { recursive: true });
  return (name) => join(path, "w", name);
}

async function seal(session: Session): Promise<string> {
  const request = { turnKey: "", outcome: "succeeded", expectedGeneration: undefined } as const;
  const { snapshot } = await host().completeTurn(session, request, call);
  if (snapshot === null) throw new Error("nothing was sealed");
  return snapshot.id;
}

const show = (changes: readonly SizedChange[]): readonly string[] =>
  changes.map(({ kind, path, oldPath }) => (kind === "renamed" ? `${kind} ${oldPath} -> ${path}` : `${kind} ${path}`));

async function diff(session: Session, request: Partial<DiffRequest> & Pick<DiffRequest, "fromSnapshotId">) {
  const all = { toSnapshotId: "", path: "/w", text: null, answerId: null };
  return show((await host().diffSnapshots(session, { ...all, ...request }, call)).changes);
}

function everyPath(root: string, at = ""): readonly string[] {
  if (!lstatSync(join(root, at)).isDirectory()) return [at];
  return [at || "/", ...readdirSync(join(root, at)).flatMap((name) => everyPath(root, `${at}/${name}`))];
}

/** Everything that can happen to a file. */
function fill(at: (name: string) => string): void {
  for (const name of ["gone", "edited", "mode", "moved", "moved-edited", "swapped"])
    writeFileSync(at(name), TEXT + name);
  mkdirSync(at("d/sub"), { recursive: true });
  for (const name of ["same", "edited", "sub/deep"]) writeFileSync(at(`d/${name}`), TEXT + name);
  writeFileSync(at("link-1"), `${TEXT}linked`);
  linkSync(at("link-1"), at("link-2"));
  symlinkSync("gone", at("pointer"));
  mkdirSync(at("becomes-link"));
  execFileSync("mkfifo", [at("fifo")]);
}
function change(at: (name: string) => string): void {
  rmSync(at("gone"));
  appendFileSync(at("edited"), "more\n");
  chmodSync(at("mode"), 0o600);
  renameSync(at("moved"), at("new-place"));
  renameSync(at("moved-edited"), at("new-place-edited"));
  appendFileSync(at("new-place-edited"), "more\n");
  writeFileSync(at("swapped"), `${TEXT}SWAPPED`);
  renameSync(at("d"), at("e"));
  appendFileSync(at("e/edited"), "more\n");
  appendFileSync(at("link-1"), "more\n");
  linkSync(at("link-1"), at("link-3"));
  rmSync(at("pointer"));
  symlinkSync("elsewhere", at("pointer"));
  rmSync(at("becomes-link"), { recursive: true });
  symlinkSync("e", at("becomes-link"));
  chmodSync(at("fifo"), 0o600);
  writeFileSync(at("added"), "x\n");
}
const EXPECTED = [
  "added /w/added",
  "type-changed /w/becomes-link",
  "renamed /w/d -> /w/e",
  "modified /w/e/edited",
  "modified /w/edited",
  "modified /w/fifo",
  "removed /w/gone",
  "modified /w/link-1",
  "modified /w/link-2",
  "added /w/link-3",
  "modified /w/mode",
  "renamed /w/moved -> /w/new-place",
  "renamed /w/moved-edited -> /w/new-place-edited",
  "modified /w/pointer",
  "modified /w/swapped",
];

describe("diffSnapshots on ZFS", () => {
  it("finds everything that can happen to a file, between snapshots and up to now, within one second too", async () => {
    const { session, at } = await newSession();
    fill(at);
    const first = await seal(session);
    change(at);
    expect(await diff(session, { fromSnapshotId: first })).toEqual(EXPECTED);
    const second = await seal(session);
    expect(await diff(session, { fromSnapshotId: first, toSnapshotId: second })).toEqual(EXPECTED);
    expect(await diff(session, { fromSnapshotId: second })).toEqual([]);
    const back = await diff(session, { fromSnapshotId: second, toSnapshotId: first });
    expect(back).toContain("renamed /w/e -> /w/d");
    expect(back).toHaveLength(EXPECTED.length);
  });

  it("answers the same from the backend's candidates, from every path as candidates, and from a walk", async () => {
    const { session, at } = await newSession();
    fill(at);
    await seal(session);
    change(at);
    await seal(session);
    const snapshots = await storage.listSnapshots(session.row.token, call);
    const [first, second] = snapshots.map(({ name }) => ({ token: session.row.token, name }));
    if (first === undefined || second === undefined) throw new Error("two snapshots were taken");
    await using from: View = await storage.openView({ kind: "snapshot", snapshot: first }, call);
    await using to: View = await storage.openView({ kind: "snapshot", snapshot: second }, call);
    const compare = createCompareInChild({ runner, nodePath: process.execPath });
    const answer = async (candidates: readonly string[] | null, commonUntilSecond: number) =>
      show(
        await compare(
          {
            from: from.path,
            to: to.path,
            path: "/w",
            candidates,
            commonUntilSecond,
            maxEntries: 10_000,
            maxChanges: 10_000,
            maxPathBytes: 10_000_000,
            deadlineMs: 30_000,
            text: null,
          },
          call,
        ),
      );
    const untilSecond = Math.floor(session.row.createdAtMs / 1000);
    expect(await answer(null, 0)).toEqual(EXPECTED);
    expect(await answer(null, untilSecond)).toEqual(EXPECTED);
    expect(await answer([...everyPath(from.path), ...everyPath(to.path)], untilSecond)).toEqual(EXPECTED);
    // Null on zfs-fuse, which has no such command.
    expect(await answer(await storage.changedPaths(first, second, call), untilSecond)).toEqual(EXPECTED);
  });

  it("does not take a file for an old one that got its number after a new mount", async () => {
    const { session, at } = await newSession();
    writeFileSync(at("old"), "what was here before, and long enough to be told from others\n");
    const first = await seal(session);
    const { ino } = lstatSync(at("old"));
    rmSync(at("old"));
    await storage.unmountHead(session.head, call);
    await storage.mountHead(session.head, call);
    const inodes: number[] = [];
    while (!inodes.includes(ino) && inodes.length < 200) {
      const name = at(`new-${inodes.length}`);
      writeFileSync(name, "0123456789".repeat(5));
      inodes.push(lstatSync(name).ino);
    }
    // A filesystem that knows births may be slower to use a number again, and needs no luck here.
    if (lstatSync(at(".")).birthtimeMs === 0) expect(inodes).toContain(ino);
    const found = await diff(session, { fromSnapshotId: first });
    expect(found).toHaveLength(inodes.length + 1);
    expect(found.filter((line) => !line.startsWith("added"))).toEqual(["removed /w/old"]);
  });

  it("compares lines that went apart at a rollback, and keeps nothing from being destroyed afterwards", async () => {
    const { session, at } = await newSession();
    writeFileSync(at("a"), "one\n");
    writeFileSync(at("b"), "one\n");
    const first = await seal(session);
    writeFileSync(at("a"), "two\n");
    const request = {
      idempotencyKey: "",
      payload: "",
      expectedGeneration: undefined,
      drainTimeoutMs: 0,
      processes: "stop",
    } as const;
    const { undoSnapshotId } = await host().rollbackSession(session, { ...request, snapshotId: first }, call);
    const now = await filesOf(session);
    writeFileSync(now("a"), "333\n");
    writeFileSync(now("b"), "333\n");
    expect(await diff(session, { fromSnapshotId: undoSnapshotId })).toEqual(["modified /w/a", "modified /w/b"]);
    expect(await diff(session, { fromSnapshotId: first, toSnapshotId: undoSnapshotId })).toEqual(["modified /w/a"]);
    const { name } = (await host().records.call("findSnapshot", undoSnapshotId)) ?? { name: "" };
    await storage.destroySnapshot({ token: session.row.token, name }, call);
    const left = await storage.listSnapshots(session.row.token, call);
    expect(left.map((snapshot) => snapshot.name)).not.toContain(name);
  });
});
