import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { systemClock } from "@turnbox/core";
import type { ObjectStore } from "../object-store.ts";
import { call, expectReason, listAll, MIB, Noise, read, readText } from "../suite/suite-fixture.suite.ts";
import { openFileObjectStore } from "./file-object-store.ts";

const exec = promisify(execFile);
const DAY_MS = 24 * 60 * 60 * 1000;

let folder: string;
let directory: string;
let store: ObjectStore;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "turnbox-objects-"));
  directory = join(folder, "store");
  store = await open();
});

afterEach(async () => {
  await store[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const open = () => openFileObjectStore({ directory, clock: systemClock }, call);
const fileOf = (key: string): string => join(directory, "objects", key);

describe("the directory of the file adapter", () => {
  it("is for its owner alone, files and folders", async () => {
    await store.put("a/b", Buffer.from("x"), {}, call);
    for (const path of ["", "objects", "drafts", "objects/a"]) {
      expect((await stat(join(directory, path))).mode & 0o777).toBe(0o700);
    }
    for (const path of ["objects/a/b", "lock.db"]) expect((await stat(join(directory, path))).mode & 0o777).toBe(0o600);
  });

  it("keeps objects over a restart", async () => {
    const { etag } = await store.put("a/b", Buffer.from("x"), {}, call);
    await store[Symbol.asyncDispose]();
    store = await open();
    expect(await store.stat("a/b", call)).toMatchObject({ etag });
    await store.put("a/b", Buffer.from("y"), { condition: { kind: "matches", etag } }, call);
    expect(await readText(store, "a/b")).toBe("y");
  });

  it("has no folder without an object", async () => {
    await store.put("a/b/c", Buffer.from("x"), {}, call);
    await store.put("a/d", Buffer.from("x"), {}, call);
    await store.delete(["a/b/c"], call);
    expect(await readdir(fileOf("a"))).toEqual(["d"]);
    await store.delete(["a/d"], call);
    expect(await readdir(fileOf(""))).toEqual([]);
  });

  it("removes what crashed puts have left, when it is a day old, at the start and by the check", async () => {
    for (const again of [open, async () => store]) {
      const [old, young] = [join(directory, "drafts", "old"), join(directory, "drafts", "young")];
      for (const path of [old, young]) await writeFile(path, "part of an object");
      const seconds = (Date.now() - 2 * DAY_MS) / 1000;
      await utimes(old, seconds, seconds);
      const opened = await again();
      await opened.check(call);
      expect(await readdir(join(directory, "drafts"))).toEqual(["young"]);
      if (opened !== store) await opened[Symbol.asyncDispose]();
    }
  });

  it("never follows a link out of the directory, on the way to an object or in its place", async () => {
    const outside = join(folder, "outside");
    await mkdir(outside);
    await store.put("seed", Buffer.from("object"), {}, call);
    const content = await readFile(fileOf("seed"));
    await writeFile(join(outside, "secret"), content);
    await symlink(outside, fileOf("linked"));
    await symlink(join(outside, "secret"), fileOf("link"));
    await expectReason(store.get("linked/secret", {}, call), "OBJECT_STORE_DENIED");
    await expectReason(store.stat("linked/secret", call), "OBJECT_STORE_DENIED");
    await expectReason(store.put("linked/secret", Buffer.from("x"), {}, call), "OBJECT_STORE_DENIED");
    await expectReason(store.put("linked/new", Buffer.from("x"), {}, call), "OBJECT_STORE_DENIED");
    const absent = { condition: { kind: "absent" } } as const;
    await expectReason(store.put("linked/secret", Buffer.from("x"), absent, call), "OBJECT_STORE_DENIED");
    await expectReason(store.delete(["linked/secret"], call), "OBJECT_STORE_DENIED");
    await expectReason(store.get("link", {}, call), "OBJECT_STORE_DENIED");
    expect((await listAll(store, "")).objects.map(({ key }) => key)).toEqual(["seed"]);
    await store.put("link", Buffer.from("own"), {}, call);
    await store.delete(["link"], call);
    expect((await readdir(outside)).sort()).toEqual(["secret"]);
    expect((await readFile(join(outside, "secret"))).equals(content)).toBe(true);
  });

  it("takes files of others for no objects, and does not wait for a FIFO", async () => {
    await store.put("a", Buffer.from("x"), {}, call);
    await writeFile(fileOf("note"), "no object of ours");
    await exec("mkfifo", [fileOf("fifo")]);
    expect((await listAll(store, "", 1)).objects.map(({ key }) => key)).toEqual(["a"]);
    await expectReason(store.get("note", {}, call), "OBJECT_DAMAGED");
    expect(await store.stat("fifo", call)).toBeUndefined();
    await expectReason(store.put("note", Buffer.from("x"), { condition: { kind: "absent" } }, call), "OBJECT_CHANGED");
    await store.put("note", Buffer.from("mine"), {}, call);
    expect(await readText(store, "note")).toBe("mine");
  });

  it("finds damage in a whole object, and gives parts as they are", async () => {
    await store.put("a", Buffer.from("0123456789"), {}, call);
    const file = await readFile(fileOf("a"));
    file.writeUInt8(file.readUInt8(file.byteLength - 1) ^ 1, file.byteLength - 1);
    await writeFile(fileOf("a"), file);
    await expectReason(read(store, "a"), "OBJECT_DAMAGED");
    expect(await readText(store, "a", { range: { offset: 0, bytes: 3 } })).toBe("012");
    await writeFile(fileOf("a"), file.subarray(0, -1));
    await expectReason(read(store, "a"), "OBJECT_DAMAGED");
  });
});

describe("the file adapter on a file system of its own", () => {
  beforeEach(async () => {
    await store[Symbol.asyncDispose]();
    await exec("mount", ["-t", "tmpfs", "-o", "size=4m", "turnbox-test", directory]);
    store = await open();
  });

  afterEach(async () => {
    await store[Symbol.asyncDispose]();
    await exec("umount", [directory]);
    store = await open();
  });

  it("names a full one, leaves nothing of the put, and goes on when there is room", async () => {
    await store.put("a", Buffer.alloc(3 * MIB), {}, call);
    await expectReason(store.putStream("b", new Noise(2 * MIB), call), "OBJECT_STORE_FULL");
    await expectReason(store.put("a", Buffer.alloc(2 * MIB), {}, call), "OBJECT_STORE_FULL");
    expect(await readdir(join(directory, "drafts"))).toEqual([]);
    expect(await read(store, "a")).toHaveLength(3 * MIB);
    await store.delete(["a"], call);
    await store.put("b", Buffer.alloc(2 * MIB), {}, call);
  });

  it("names one that cannot be written, and is not opened there", async () => {
    await store.put("a", Buffer.from("x"), {}, call);
    await store[Symbol.asyncDispose]();
    await exec("mount", ["-o", "remount,ro", directory]);
    await expectReason(open(), "OBJECT_STORE_DENIED");
    await exec("mount", ["-o", "remount,rw", directory]);
    store = await open();
    expect(await readText(store, "a")).toBe("x");
  });
});
