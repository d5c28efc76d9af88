import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import { randomToken } from "@turnbox/core";
import type { BaseRef, Head, Origin } from "../storage.ts";
import { call, eventually, expectReason, MIB, test, writeNoise, type SuiteFixture } from "./suite-fixture.suite.ts";

/** By number: Node has no name for it. */
const EDQUOT = { errno: -constants.errno.EDQUOT };

export function headSuite(suite: SuiteFixture): void {
  const { newBase, newSession, found } = suite;

  describe("heads", () => {
    test("are mounted and unmounted as often as one likes", async () => {
      const head = await newSession();
      await suite.storage.unmountHead(head, call);
      await suite.storage.unmountHead(head, call);
      if (suite.options.mounts !== "none") expect((await found(head.token))?.heads).toMatchObject([{ mounted: "no" }]);
      expect(await suite.storage.mountHead(head, call)).toEqual(head);
      expect(await suite.storage.mountHead(head, call)).toEqual(head);
      expect((await found(head.token))?.heads).toMatchObject([{ mounted: "yes" }]);
      expect(await readFile(join(head.path, "hello"), "utf8")).toBe("from the base");
    });

    test("that are not there are named so", async () => {
      const { token } = await newSession();
      for (const head of [
        { token, generation: 7 },
        { token: "nobody", generation: 1 },
      ]) {
        await expectReason(suite.storage.mountHead(head, call), "SESSION_NOT_FOUND");
        await expectReason(suite.storage.unmountHead(head, call), "SESSION_NOT_FOUND");
        await suite.storage.destroyHead(head, call);
      }
      const origin: Origin = { kind: "base", base: await newBase() };
      await expectReason(
        suite.storage.createHead({ token: "nobody", generation: 2, origin, marks: {} }, call),
        "SESSION_NOT_FOUND",
      );
      await expectReason(suite.storage.usedBytes("nobody", call), "SESSION_NOT_FOUND");
      await expectReason(suite.storage.mountHead({ token, generation: 0 }, call), "INVALID_ARGUMENT");
    });

    test("from a base stand beside the first", async () => {
      const base = await newBase();
      const first = await newSession({ base });
      await writeFile(join(first.path, "hello"), "changed");
      const spec = {
        token: first.token,
        generation: 2,
        origin: { kind: "base", base },
        marks: { why: "repair" },
      } as const;
      const second = await suite.storage.createHead(spec, call);
      expect(await suite.storage.createHead(spec, call)).toEqual(second);
      expect(await readFile(join(second.path, "hello"), "utf8")).toBe("from the base");
      expect((await found(first.token))?.heads.map(({ generation, marks }) => [generation, marks])).toEqual([
        [1, {}],
        [2, { why: "repair" }],
      ]);
      await suite.storage.destroyHead(first, call);
      await suite.storage.destroyHead(first, call);
      expect((await found(first.token))?.heads.map(({ generation }) => generation)).toEqual([2]);
    });

    test("asked for from another origin are not mistaken for the one that is there", async () => {
      const [base, other] = [await newBase(), await newBase({ hello: "from the other" })];
      const { token } = await newSession({ base });
      const from = (ref: BaseRef) =>
        ({ token, generation: 2, origin: { kind: "base", base: ref }, marks: {} }) as const;
      const first = await suite.storage.createHead(from(base), call);
      await writeFile(join(first.path, "kept"), "yes");
      const refused = suite.storage.createHead(from(other), call);
      await expect(refused).rejects.toMatchObject({
        reason: "STORAGE_UNAVAILABLE",
        message: expect.stringContaining(`generation 2 of ${token}`),
      });
      expect(await suite.storage.createHead(from(base), call)).toEqual(first);
      expect(await readFile(join(first.path, "kept"), "utf8")).toBe("yes");
    });

    if (suite.options.mounts !== "none") {
      test("left unmounted and unsealed by a call that was cut off make room for another origin", async () => {
        const { token } = await newSession();
        const other = await newBase({ hello: "from the other" });
        const origin: Origin = { kind: "base", base: await newBase() };
        const leftover = await suite.storage.createHead({ token, generation: 2, origin, marks: { n: "1" } }, call);
        await suite.storage.unmountHead(leftover, call);
        const spec = { token, generation: 2, origin: { kind: "base", base: other }, marks: { n: "2" } } as const;
        const head = await suite.storage.createHead(spec, call);
        expect(await readFile(join(head.path, "hello"), "utf8")).toBe("from the other");
        expect((await found(token))?.heads[1]).toEqual({ token, generation: 2, mounted: "yes", marks: { n: "2" } });
      });

      test("that were sealed stay for any other origin", async () => {
        const { token } = await newSession();
        const origin: Origin = { kind: "base", base: await newBase() };
        const sealed = await suite.storage.createHead({ token, generation: 2, origin, marks: {} }, call);
        await suite.storage.seal(sealed, randomToken(12), {}, call);
        await suite.storage.unmountHead(sealed, call);
        const other: Origin = { kind: "base", base: await newBase() };
        await expectReason(
          suite.storage.createHead({ token, generation: 2, origin: other, marks: {} }, call),
          "STORAGE_UNAVAILABLE",
        );
        expect((await found(token))?.snapshots).toHaveLength(1);
      });
    }

    if (suite.options.mounts === "real") {
      test("in use stay mounted and say so", async () => {
        const head = await newSession();
        const user = spawn("sleep", ["60"], { cwd: head.path, stdio: "ignore" });
        await once(user, "spawn");
        try {
          await expectReason(suite.storage.unmountHead(head, call), "STORAGE_UNAVAILABLE");
          expect((await found(head.token))?.heads).toMatchObject([{ mounted: "yes" }]);
          await expectReason(suite.storage.destroySession(head.token, call), "STORAGE_UNAVAILABLE");
        } finally {
          user.kill("SIGKILL");
          await once(user, "exit");
        }
        // The errors of a destroy are not lost, and the same call again ends it (D4).
        await eventually(() => suite.storage.destroySession(head.token, call));
        expect(await found(head.token)).toBeUndefined();
      });
    }
  });

  describe("quota", () => {
    test("is the allowance on top of the base", async () => {
      const base = await newBase({ big: "x".repeat(3 * MIB) });
      const referenced =
        (await suite.storage.listBases(call)).find(({ digest }) => digest === base.digest)?.referencedBytes ?? 0;
      const head = await newSession({ base, quotaBytes: 8 * MIB });
      expect(head.refquotaBytes).toBe(referenced + 8 * MIB);
      expect((await suite.storage.mountHead(head, call)).refquotaBytes).toBe(head.refquotaBytes);
      expect((await newSession({ base })).refquotaBytes).toBeUndefined();
    });

    test("is taken as it is where the whole bound is given, and never less than what the origin refers to", async () => {
      const base = await newBase({ big: "x".repeat(3 * MIB) });
      expect((await newSession({ base, refquotaBytes: 64 * MIB, quotaBytes: MIB })).refquotaBytes).toBe(64 * MIB);
      const referenced =
        (await suite.storage.listBases(call)).find(({ digest }) => digest === base.digest)?.referencedBytes ?? 0;
      expect((await newSession({ base, refquotaBytes: 1 })).refquotaBytes).toBe(referenced);
    });

    test("is given, changed and removed also after the session was made", async () => {
      const base = await newBase({ big: "x".repeat(3 * MIB) });
      const origin = { kind: "base", base } as const;
      const { token, ...made } = await newSession({ base });
      const asMade = await newSession({ base, quotaBytes: 8 * MIB });
      for (const quotaBytes of [64 * MIB, 8 * MIB])
        await suite.storage.boundSession({ token, origin, quotaBytes }, call);
      const bounded = await suite.storage.boundSession({ token, origin, quotaBytes: 8 * MIB }, call);
      expect(bounded).toEqual({ ...made, token, refquotaBytes: asMade.refquotaBytes });
      expect(await suite.storage.mountHead(bounded, call)).toEqual(bounded);
      expect(await suite.storage.boundSession({ token, origin }, call)).toEqual({ ...made, token });
      await expectReason(suite.storage.boundSession({ token: randomToken(12), origin }, call), "SESSION_NOT_FOUND");
    });

    if (suite.options.quota === "enforced") {
      /** Writes and seals until one of both is refused; returns the refusal. */
      const fill = async (head: Head): Promise<unknown> => {
        const rounds = async (): Promise<void> => {
          for (let round = 0; round < 12; round += 1) {
            await writeNoise(join(head.path, "big"), 7 * MIB);
            await suite.storage.seal(head, `s${round}`, {}, call);
            await rm(join(head.path, "big"));
          }
        };
        return await rounds().catch((error: unknown) => error);
      };

      test("that was given later bounds the agent and its snapshots as one from the start", async () => {
        const base = await newBase();
        const [head, sealed] = [await newSession({ base }), await newSession({ base })];
        const bound = { origin: { kind: "base", base }, quotaBytes: 8 * MIB } as const;
        for (const { token } of [head, sealed]) await suite.storage.boundSession({ ...bound, token }, call);
        await expect(writeNoise(join(head.path, "big"), 16 * MIB)).rejects.toMatchObject(EDQUOT);
        await fill(sealed);
        await eventually(() =>
          expectReason(suite.storage.seal(sealed, "one_more", {}, call), "SNAPSHOT_SPACE_EXHAUSTED"),
        );
      });

      test("ends writing with EDQUOT, and deleting makes room again", async () => {
        const head = await newSession({ quotaBytes: 8 * MIB });
        await expect(writeNoise(join(head.path, "big"), 16 * MIB)).rejects.toMatchObject(EDQUOT);
        await suite.storage.seal(head, "full", {}, call);
        await rm(join(head.path, "big"));
        await eventually(() => writeNoise(join(head.path, "again"), 4 * MIB));
      });

      test("of the whole session keeps snapshots from eating the pool", async () => {
        const head = await newSession({ quotaBytes: 8 * MIB });
        // Whichever comes first: the refusal of the agent's write or of the seal.
        const thrown = await fill(head);
        expect(
          [EDQUOT, { reason: "SNAPSHOT_SPACE_EXHAUSTED" }].map((one) => expect.objectContaining(one)),
        ).toContainEqual(thrown);
        await eventually(() =>
          expectReason(suite.storage.seal(head, "one_more", {}, call), "SNAPSHOT_SPACE_EXHAUSTED"),
        );
        // One that is there takes nothing more.
        await suite.storage.seal(head, "s0", {}, call);
        await suite.storage.destroySnapshot({ token: head.token, name: "s0" }, call);
        await eventually(async () => {
          await suite.storage.seal(head, "one_more", {}, call);
        });
      });
    }
  });
}
