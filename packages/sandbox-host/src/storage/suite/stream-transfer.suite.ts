import { chmod, link, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import { createChildCommandRunner, randomToken } from "@turnbox/core";
import type { Head, Storage } from "../storage.ts";
import {
  announced,
  copySession,
  describeTree,
  expectSame,
  filesAt,
  newBase,
  newSession,
  receiveAll,
  receiveBases,
  refOf,
  sealed,
  sendAll,
  type StreamFixture,
  streamOf,
  streamsOf,
  unique,
} from "./stream-fixture.suite.ts";
import { call, eventually, expectReason, MIB, test, writeFiles, writeNoise } from "./suite-fixture.suite.ts";

const cloneOf = (storage: Storage, { token }: Head, name: string, generation: number): Promise<Head> =>
  storage.createHead(
    { token, generation, origin: { kind: "snapshot", snapshot: refOf({ token }, name) }, marks: {} },
    call,
  );

/** What arrives. */
export function streamTransferSuite(suite: StreamFixture): void {
  const foundThere = async (token: string) =>
    (await suite.there.inventory(call)).find((session) => session.token === token);

  describe("a session that was sent", () => {
    test("is the same byte for byte, with the marks, times and order that it is given", async () => {
      const { here, there } = suite;
      const head = await newSession(here, ["s1"]);
      await mkdir(join(head.path, "deep/er"), { recursive: true, mode: 0o750 });
      await writeNoise(join(head.path, "deep/er/noise"), 3 * MIB);
      await sealed(here, head, "s2");
      await rm(join(head.path, "deep/er/noise"));
      await rm(join(head.path, "hello"));
      await sealed(here, head, "s3");
      const copy = await copySession(here, there, head.token);
      await expectSame(here, there, copy, head.token);
      const before = await here.listSnapshots(head.token, call);
      const after = await there.listSnapshots(copy.token, call);
      expect(after.map(({ name }) => name)).toEqual(before.map(({ name }) => copy.names.get(name)));
      expect(after.map(({ marks }) => marks)).toEqual(before.map(({ name }) => ({ of: name, odd: "a\nb" })));
      expect(after.map(({ createdAtMs }) => Math.round(createdAtMs / 1000))).toEqual(
        before.map(({ createdAtMs }) => Math.round(createdAtMs / 1000)),
      );
      expect((await streamsOf(there).chain(copy.token, call)).map(({ guid }) => guid)).toEqual(
        copy.sent.map(({ link: { guid } }) => guid),
      );
      expect(await foundThere(copy.token)).toMatchObject({
        marks: { copied: "yes" },
        heads: [{ generation: 1, mounted: "no" }],
        snapshots: [...copy.names.values()],
      });
    });

    test("of 30 snapshots, with a branch and an undo, has no more heads than before", async () => {
      const { here, there } = suite;
      const first = await newSession(
        here,
        Array.from({ length: 14 }, (_, index) => `a${index}`),
      );
      const second = await cloneOf(here, first, "a9", 2);
      for (let index = 0; index < 10; index += 1) await sealed(here, second, `b${index}`);
      await sealed(here, first, "undo");
      const third = await cloneOf(here, second, "b4", 3);
      for (let index = 0; index < 5; index += 1) await sealed(here, third, `c${index}`);
      const copy = await copySession(here, there, first.token);
      expect(copy.sent).toHaveLength(30);
      const some = copy.sent.filter((_, index) => index % 7 === 1 || index === 29);
      await expectSame(here, there, { ...copy, sent: some }, first.token);
      expect((await foundThere(copy.token))?.heads.map(({ generation }) => generation).toSorted()).toEqual([1, 2, 3]);
      const live = await cloneOf(there, { token: copy.token, generation: 4, path: "" }, "c4", 4);
      expect(await readFile(join(live.path, "at"), "utf8")).toBe("c4");
      expect(await readFile(join(live.path, "hello"), "utf8")).toBe("from the base");
    });

    test("arrives also after promotions have moved its snapshots, in whatever order they are sent", async () => {
      const { here, there } = suite;
      const first = await newSession(here, ["s1", "s2"]);
      const early = await sendAll(here, first.token);
      const second = await cloneOf(here, first, "s1", 2);
      await here.destroySnapshot(refOf(first, "s2"), call);
      await here.unmountHead(first, call);
      expect(await here.collectHeads(second, call)).toHaveLength(1);
      await sealed(here, second, "t1");
      const late = await sendAll(here, first.token);
      expect(late.map(({ link: { guid } }) => guid)).toContain(early[0]?.link.guid);
      expect(late.map(({ link: { parent } }) => parent?.guid)).toContain(early[0]?.link.guid);
      const all = [...early, ...late.slice(1)];
      await receiveBases(here, there, all);
      const copy = await receiveAll(there, all);
      const files = await filesAt(here, refOf(first, "t1"));
      expect(await filesAt(there, { token: copy.token, name: `${copy.token}-t1` })).toEqual(files);
      const again = await receiveAll(there, [...late]);
      expect(await filesAt(there, { token: again.token, name: `${again.token}-t1` })).toEqual(files);
    });

    test("may be a fork, which has what it was forked from before it", async () => {
      const { here, there } = suite;
      const parent = await newSession(here, ["s1", "s2"]);
      const origin = { kind: "snapshot", snapshot: refOf(parent, "s1") } as const;
      const fork = await here.createSession({ token: randomToken(12), origin, marks: {} }, call);
      await sealed(here, fork, "f1");
      const [own, ...others] = await streamsOf(here).chain(fork.token, call);
      expect(others).toEqual([]);
      expect(own?.parent?.of).toEqual({ kind: "snapshot", snapshot: refOf(parent, "s1") });
      const [before] = await sendAll(here, parent.token);
      const sent = [before!, ...(await sendAll(here, fork.token))];
      await receiveBases(here, there, sent);
      const copy = await receiveAll(there, sent);
      expect(await filesAt(there, { token: copy.token, name: `${copy.token}-f1` })).toEqual(
        await filesAt(here, refOf(fork, "f1")),
      );
    });

    test("is used like any other", async () => {
      const { here, there } = suite;
      const first = await newSession(here, ["s1", "s2"]);
      await here.seal(first, unique(first, "same"), {}, call);
      const { token } = await copySession(here, there, first.token);
      const ref = (name: string) => ({ token, name: unique({ token }, name) });
      expect(await there.isUnchanged(ref("same"), ref("s2"), call)).toBe(true);
      expect(await there.isUnchanged(ref("s2"), ref("s1"), call)).toBe(false);
      const live = await cloneOf(there, { token, generation: 7, path: "" }, "s1", 7);
      await sealed(there, live, "next");
      expect((await there.listSnapshots(token, call)).map(({ name }) => name)).toEqual(
        ["s1", "s2", "same", "next"].map((name) => unique({ token }, name)),
      );
      const fork = await there.createSession(
        { token: randomToken(12), origin: { kind: "snapshot", snapshot: ref("s2") }, marks: {} },
        call,
      );
      expect(await readFile(join(fork.path, "at"), "utf8")).toBe("s2");
      await expectReason(there.destroySession(token, call), "SNAPSHOT_IN_USE");
      await there.destroySession(fork.token, call);
      for (const name of ["same", "s2"]) await there.destroySnapshot(ref(name), call);
      expect(await there.collectHeads(live, call)).toEqual([{ token, generation: 1 }]);
      expect(await readFile(join(live.path, "at"), "utf8")).toBe("next");
      const onward = await copySession(there, here, token);
      expect(onward.sent.map(({ link }) => link.name)).toEqual(["s1", "next"].map((name) => unique({ token }, name)));
      await there.destroySession(token, call);
      expect(await foundThere(token)).toBeUndefined();
    });

    test("stands on snapshots of its own also where another copy of it is", async () => {
      const { here, there } = suite;
      const first = await newSession(here, ["s1", "s2"]);
      const second = await cloneOf(here, first, "s1", 2);
      await sealed(here, second, "b1");
      const tokens: string[] = [];
      const targets = [there, there, there, here, here];
      for (const to of targets) {
        const copy = await copySession(here, to, first.token);
        await expectSame(here, to, { ...copy, sent: copy.sent.slice(-1) }, first.token);
        tokens.push(copy.token);
      }
      for (const [index, token] of tokens.entries()) await targets[index]?.destroySession(token, call);
      await here.destroySession(first.token, call);
    });

    test("is there after a restart, and goes on being received", async () => {
      const { here, there } = suite;
      const head = await newSession(here, ["s1", "s2"]);
      const sent = await sendAll(here, head.token);
      await receiveBases(here, there, sent);
      const { token } = await receiveAll(there, sent.slice(0, 1));
      const again = suite.restarted();
      await again.open(call);
      await streamsOf(again).receive(announced(token, sent[1]!), streamOf(sent[1]!.bytes), call);
      expect((await again.listSnapshots(token, call)).map(({ name }) => name)).toEqual(
        ["s1", "s2"].map((name) => unique({ token }, name)),
      );
    });

    test("received twice is received once", async () => {
      const { here, there } = suite;
      const head = await newSession(here, ["s1", "s2"]);
      const sent = await sendAll(here, head.token);
      await receiveBases(here, there, sent);
      const { token } = await receiveAll(there, sent);
      const before = await there.listSnapshots(token, call);
      await streamsOf(there).beginSession({ token, marks: { copied: "again" } }, call);
      for (const one of sent) await streamsOf(there).receive(announced(token, one), streamOf(one.bytes), call);
      expect((await there.listSnapshots(token, call)).map(({ name }) => name)).toEqual(before.map(({ name }) => name));
      const renamed = { ...announced(token, sent[0]!), name: unique({ token }, "other") };
      await expectReason(streamsOf(there).receive(renamed, streamOf(sent[0]!.bytes), call), "INVALID_ARGUMENT");
    });
  });

  describe("a base that was sent", () => {
    test("lives beside one of the same digest, is in no listing, and goes with the last session on it", async () => {
      const { here, there } = suite;
      const base = await newBase(here, { which: "theirs" });
      await there.createBase(base, (directory) => writeFiles(directory, { which: "own" }), call);
      const own = await streamsOf(there).baseGuid(base, call);
      const head = await newSession(here, ["s1"], base);
      const guid = await streamsOf(here).baseGuid(base, call);
      expect(guid).not.toBe(own);
      const copies = [await copySession(here, there, head.token), await copySession(here, there, head.token)];
      expect(await streamsOf(there).hasBase(base, guid ?? "", call)).toBe(true);
      expect(await streamsOf(there).baseGuid(base, call)).toBe(own);
      expect((await there.listBases(call)).filter(({ digest }) => digest === base.digest)).toHaveLength(1);
      const live = await cloneOf(there, { token: copies[0]!.token, generation: 2, path: "" }, "s1", 2);
      expect(await readFile(join(live.path, "which"), "utf8")).toBe("theirs");
      const fresh = await newSession(there, [], base);
      expect(await readFile(join(fresh.path, "which"), "utf8")).toBe("own");
      await there.destroySession(copies[0]!.token, call);
      expect(await streamsOf(there).hasBase(base, guid ?? "", call)).toBe(true);
      await there.destroySession(copies[1]!.token, call);
      expect(await streamsOf(there).hasBase(base, guid ?? "", call)).toBe(false);
      await there.destroySession(fresh.token, call);
      await there.destroyBase(base, call);
    });

    test("goes at a start if no session stands on it", async () => {
      const { here, there } = suite;
      const base = await newBase(here);
      const { guid, stream } = await streamsOf(here).sendBase(base, call);
      await streamsOf(there).receiveBase(base, guid, stream, call);
      expect(await streamsOf(there).baseGuid(base, call)).toBe(guid);
      expect((await there.listBases(call)).some(({ digest }) => digest === base.digest)).toBe(false);
      await expectReason(newSession(there, [], base), "TEMPLATE_NOT_FOUND");
      const again = suite.restarted();
      await again.open(call);
      await eventually(async () => {
        expect(await streamsOf(again).baseGuid(base, call)).toBeUndefined();
      });
    });
  });

  describe("what is in the files", () => {
    test("is only bytes to the service: links, set-user bits, devices and long names arrive as they are", async () => {
      const { here, there, options } = suite;
      const head = await newSession(here, []);
      const at = (name: string): string => join(head.path, name);
      await symlink("/etc/passwd", at("out"));
      await symlink("../../../../../etc/shadow", at("up"));
      await writeFile(at("program"), "#!/bin/sh\n");
      await chmod(at("program"), 0o6755);
      await writeFile(at(`${"n".repeat(250)}\n\t'"$`), "long");
      await mkdir(at(Array.from({ length: 30 }, () => "d".repeat(30)).join("/")), { recursive: true });
      if (options.mounts === "real") {
        await link(at("program"), at("second"));
        const runner = createChildCommandRunner();
        const node = { command: "mknod", args: [at("null"), "c", "1", "3"], deadlineMs: 5000 };
        expect((await runner.run(node)).exitCode).toBe(0);
      }
      await sealed(here, head, "s1");
      const copy = await copySession(here, there, head.token);
      await expectSame(here, there, copy, head.token);
      const live = await cloneOf(there, { token: copy.token, generation: 2, path: "" }, "s1", 2);
      expect(await describeTree(live.path)).toEqual(await filesAt(here, refOf(head, "s1")));
      if (options.mounts !== "real") return;
      const table = await readFile("/proc/self/mountinfo", "utf8");
      const mount = table.split("\n").find((line) => line.split(" ")[4] === live.path);
      expect(mount?.split(" ")[5]?.split(",")).toEqual(expect.arrayContaining(["nosuid", "nodev"]));
      expect(table).not.toContain(`/${copy.token}/g1 `);
    });
  });
}
