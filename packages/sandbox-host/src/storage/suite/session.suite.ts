import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import { randomToken } from "@turnbox/core";
import type { Marks, Origin } from "../storage.ts";
import { call, eventually, expectReason, MIB, test, writeNoise, type SuiteFixture } from "./suite-fixture.suite.ts";

export function sessionSuite(suite: SuiteFixture): void {
  const { newBase, newSession, found, testSnapshots } = suite;

  describe("opening", () => {
    test("is done again without harm", async () => {
      const head = await newSession();
      await writeFile(join(head.path, "kept"), "yes");
      expect(await suite.storage.open(call)).toEqual({ remounted: [] });
      expect(await readFile(join(head.path, "kept"), "utf8")).toBe("yes");
    });

    test("disturbs nothing that is under way", async () => {
      const base = await newBase();
      const creating = Array.from({ length: 4 }, () => newSession({ base }));
      const openings = Array.from({ length: 4 }, () => suite.storage.open(call));
      expect(await Promise.all(openings)).toEqual(Array.from({ length: 4 }, () => ({ remounted: [] })));
      for (const head of await Promise.all(creating))
        expect(await readFile(join(head.path, "hello"), "utf8")).toBe("from the base");
    });

    test("after a restart finds all that was there", async () => {
      const base = await newBase();
      const head = await newSession({ base, marks: { session_id: "s-1" } });
      await writeFile(join(head.path, "kept"), "yes");
      const again = suite.restarted();
      await again.open(call);
      expect((await again.listBases(call)).map(({ digest }) => digest)).toContain(base.digest);
      expect(await again.inventory(call)).toContainEqual(
        expect.objectContaining({ token: head.token, marks: { session_id: "s-1" } }),
      );
      const mounted = await again.mountHead(head, call);
      expect(mounted).toEqual(head);
      expect(await readFile(join(mounted.path, "kept"), "utf8")).toBe("yes");
    });

    test("flushes what is mounted and what is not, as often as one likes", async () => {
      const [head, idle] = [await newSession(), await newSession()];
      await writeFile(join(head.path, "kept"), "yes");
      await suite.storage.unmountHead(idle, call);
      await suite.storage.flush(call);
      await suite.storage.flush(call);
      expect(await readFile(join(head.path, "kept"), "utf8")).toBe("yes");
    });

    test("has to come first", async () => {
      const closed = suite.restarted();
      await expectReason(closed.flush(call), "STORAGE_UNAVAILABLE");
      await expectReason(closed.inventory(call), "STORAGE_UNAVAILABLE");
      await expectReason(closed.destroySession("nobody", call), "STORAGE_UNAVAILABLE");
    });

    test("yields a true status", async () => {
      const status = await suite.storage.status(call);
      expect(status.state).toBe("online");
      expect(status.detail).not.toBe("");
      expect(status.sizeBytes).toBeGreaterThan(100 * MIB);
      expect(status.availableBytes).toBeGreaterThan(0);
      expect(status.usedBytes).toBeGreaterThanOrEqual(0);
      expect(status.usedBytes + status.availableBytes).toBeLessThanOrEqual(status.sizeBytes);
    });
  });

  describe("sessions", () => {
    test("begin with a mounted head of generation 1 that holds the base", async () => {
      const head = await newSession();
      expect(head.generation).toBe(1);
      expect(await readFile(join(head.path, "hello"), "utf8")).toBe("from the base");
    });

    test("created twice are created once", async () => {
      const base = await newBase();
      const spec = {
        token: randomToken(12),
        origin: { kind: "base", base },
        quotaBytes: 64 * MIB,
        marks: { a: "1" },
      } as const;
      const head = await suite.storage.createSession(spec, call);
      await writeFile(join(head.path, "kept"), "yes");
      expect(await suite.storage.createSession(spec, call)).toEqual(head);
      expect(await readFile(join(head.path, "kept"), "utf8")).toBe("yes");
    });

    test("are never made over by one of the same token from another origin", async () => {
      const head = await newSession();
      await writeFile(join(head.path, "kept"), "yes");
      await suite.storage.unmountHead(head, call);
      const origin: Origin = { kind: "base", base: await newBase() };
      const again = suite.storage.createSession({ token: head.token, origin, marks: {} }, call);
      await expect(again).rejects.toMatchObject({
        reason: "STORAGE_UNAVAILABLE",
        message: expect.stringContaining(head.token),
      });
      await suite.storage.mountHead(head, call);
      expect(await readFile(join(head.path, "kept"), "utf8")).toBe("yes");
    });

    test("eight at once are independent of one another", async () => {
      const base = await newBase();
      const heads = await Promise.all(Array.from({ length: 8 }, () => newSession({ base })));
      await Promise.all(heads.map((head, index) => writeFile(join(head.path, "mine"), String(index))));
      const read = await Promise.all(heads.map((head) => readFile(join(head.path, "mine"), "utf8")));
      expect(read).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"]);
      expect(new Set(heads.map(({ path }) => path)).size).toBe(8);
      await Promise.all(heads.map(({ token }) => suite.storage.destroySession(token, call)));
    });

    test("of one token asked for twice at once are one session", async () => {
      const spec = { token: randomToken(12), origin: { kind: "base", base: await newBase() }, marks: {} } as const;
      const [one, two] = await Promise.all([
        suite.storage.createSession(spec, call),
        suite.storage.createSession(spec, call),
      ]);
      expect(one).toEqual(two);
    });

    test("from a template that is not there leave nothing behind", async () => {
      const token = randomToken(12);
      const origin: Origin = { kind: "base", base: { name: "nowhere", digest: "ab" } };
      await expectReason(suite.storage.createSession({ token, origin, marks: {} }, call), "TEMPLATE_NOT_FOUND");
      expect(await found(token)).toBeUndefined();
    });

    test("cancelled at any moment are whole after the same call again", async () => {
      const base = await newBase();
      for (const afterMs of [0, 5, 15, 30, 60]) {
        const spec = {
          token: randomToken(12),
          origin: { kind: "base", base },
          marks: { at: String(afterMs) },
        } as const;
        const cancelled = new AbortController();
        const first = suite.storage
          .createSession(spec, { signal: cancelled.signal })
          .catch((thrown: unknown) => thrown);
        setTimeout(() => {
          cancelled.abort();
        }, afterMs);
        const result = await first;
        if (result instanceof Error) expect(result).toMatchObject({ reason: "CANCELLED" });
        // What was under way may end after its caller is gone; it is no obstacle to the same call, and nothing else is.
        const head = await suite.storage.createSession(spec, call);
        expect(await readFile(join(head.path, "hello"), "utf8")).toBe("from the base");
        expect(await found(spec.token)).toMatchObject({
          marks: spec.marks,
          heads: [{ generation: 1, marks: spec.marks }],
        });
      }
    });

    test("asked for with a signal that is already aborted are not made", async () => {
      const token = randomToken(12);
      const origin: Origin = { kind: "base", base: await newBase() };
      const aborted = { signal: AbortSignal.abort() };
      await expectReason(suite.storage.createSession({ token, origin, marks: {} }, aborted), "CANCELLED");
      expect(await found(token)).toBeUndefined();
    });

    test("with tokens that are no tokens are refused", async () => {
      const origin: Origin = { kind: "base", base: await newBase() };
      for (const token of ["", ".", "..", "../up", "a/b", "-x", "a b", "a@b", "x".repeat(65)]) {
        await expectReason(suite.storage.createSession({ token, origin, marks: {} }, call), "INVALID_ARGUMENT");
        await expectReason(suite.storage.destroySession(token, call), "INVALID_ARGUMENT");
      }
    });

    test("count the bytes they really take (D5)", async () => {
      const head = await newSession();
      const beforeBytes = await suite.storage.usedBytes(head.token, call);
      await writeNoise(join(head.path, "big"), 8 * MIB);
      await eventually(async () => {
        expect(await suite.storage.usedBytes(head.token, call)).toBeGreaterThan(beforeBytes + 7.5 * MIB);
      });
      expect(await suite.storage.usedBytes(head.token, call)).toBeLessThan(beforeBytes + 12 * MIB);
    });

    test("count the bytes that a head refers to, its origin's included", async () => {
      const head = await newSession();
      const beforeBytes = await suite.storage.headBytes(head, call);
      await writeNoise(join(head.path, "big"), 8 * MIB);
      await eventually(async () => {
        expect(await suite.storage.headBytes(head, call)).toBeGreaterThan(beforeBytes + 7.5 * MIB);
      });
      await expectReason(suite.storage.headBytes({ ...head, generation: 9 }, call), "SESSION_NOT_FOUND");
    });

    test("count them for all at once, each as for itself", async () => {
      const heads = [await newSession(), await newSession(), await newSession()];
      await writeNoise(join(heads[1]!.path, "big"), 4 * MIB);
      await eventually(async () => {
        const all = await suite.storage.usedBytesOfAll(call);
        const single = await Promise.all(heads.map(({ token }) => suite.storage.usedBytes(token, call)));
        expect(heads.map(({ token }) => all.get(token))).toEqual(single);
        expect(single[1]).toBeGreaterThan(3.5 * MIB);
      });
      await suite.storage.destroySession(heads[0]!.token, call);
      const tokens = [...(await suite.storage.usedBytesOfAll(call)).keys()];
      expect(tokens).not.toContain(heads[0]!.token);
      expect(tokens.toSorted()).toEqual((await suite.storage.inventory(call)).map(({ token }) => token).toSorted());
    });

    test("are listed without their marks as with them", async () => {
      const head = await newSession({ marks: { a: "1" } });
      if (suite.storage.capabilities.snapshots === "supported") {
        await suite.storage.seal(head, "p1", {}, call);
        const view = await suite.storage.openView({ kind: "head", head }, call);
        await view[Symbol.asyncDispose]();
      }
      const inventory = await suite.storage.inventory(call);
      const present = await suite.storage.presence(call);
      expect(present).toHaveLength(inventory.length);
      for (const { token, heads, snapshots } of inventory) {
        const same = present.find((session) => session.token === token);
        expect(same?.heads.map(({ generation, mounted }) => [generation, mounted]).toSorted()).toEqual(
          heads.map(({ generation, mounted }) => [generation, mounted]).toSorted(),
        );
        expect(same?.snapshots.toSorted()).toEqual(snapshots.toSorted());
      }
      expect(present.map(({ token }) => token)).toContain(head.token);
    });
  });

  describe("marks", () => {
    const MARKS: Marks = {
      plain: "value",
      empty: "",
      dash: "-",
      tab: "a\tb",
      newline: "a\nb\r\nc",
      unicode: "snö ☃ 🙂",
      quotes: `'"\`$(x)\\`,
      percent: "100% %20 %zz =a",
      equals: "=not base64=",
      space: "  around  ",
      long_ascii: "x".repeat(512),
      long_wide: "\t".repeat(512),
      long_unicode: "🙂".repeat(128),
    };

    test("of a session and of its head come back as they were given", async () => {
      const head = await newSession({ marks: MARKS });
      const session = await found(head.token);
      expect(session?.marks).toEqual(MARKS);
      expect(session?.heads).toEqual([{ token: head.token, generation: 1, mounted: "yes", marks: MARKS }]);
    });

    testSnapshots("of a snapshot come back as they were given, and nothing else does", async () => {
      const head = await newSession({ marks: { inherited: "no" } });
      await suite.storage.seal(head, "s1", MARKS, call);
      await suite.storage.seal(head, "s2", {}, call);
      expect((await suite.storage.listSnapshots(head.token, call)).map(({ marks }) => marks)).toEqual([MARKS, {}]);
    });

    test("that break the rule are refused", async () => {
      const origin: Origin = { kind: "base", base: await newBase() };
      for (const marks of [
        { Upper: "x" },
        { "a:b": "x" },
        { a1: "x" },
        { a: "x".repeat(513) },
        { a: "\ud800" },
        { a: "\0" },
      ]) {
        await expectReason(
          suite.storage.createSession({ token: randomToken(12), origin, marks }, call),
          "INVALID_ARGUMENT",
        );
      }
    });
  });
}
