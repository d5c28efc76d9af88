import { beforeEach, describe, expect, it } from "@jest/globals";
import { createManualClock, type ManualClock } from "@turnbox/core/testing";
import { CALL, failureOf, noise, Rig } from "../archive.suite.ts";
import { GRACE_MS } from "../format.ts";
import type { SandboxManifest } from "../manifest/manifest.ts";
import { objectsOf } from "../manifest/manifest.ts";
import { manifestKey, sandboxOf } from "../manifest/owner.ts";
import { partKey, PARTS_PREFIX } from "../object/object-record.ts";
import { SWEEP_LIST_KEY } from "../sweep-list/sweep-list.ts";
import { GarbageCollection, type SweepReport } from "./garbage-collection.ts";

const HOUR_MS = 3_600_000;
const MOST_TURNS = 20_000;
const PATIENCE_MS = 4000;
const SEEDS = process.env["TURNBOX_FULL"] === "1" ? 3000 : 60;
let clock: ManualClock;
let rig: Rig;
let collection: GarbageCollection;

beforeEach(() => {
  clock = createManualClock();
  rig = new Rig({ clock });
  collection = new GarbageCollection({ store: rig.store, manifests: rig.manifests, clock });
});

/** Collects while time passes. */
async function collect(options: Parameters<GarbageCollection["collect"]>[0] = {}): Promise<SweepReport> {
  const state = { isOver: false };
  const report = collection.collect(options, CALL).finally(() => {
    state.isOver = true;
  });
  report.catch(() => undefined);
  while (!state.isOver) await clock.advance(1000);
  return await report;
}

const namedBy = (...manifests: readonly SandboxManifest[]): readonly string[] =>
  [
    ...new Set(
      manifests.flatMap((one) => [...objectsOf(one)]).flatMap(({ parts }) => parts.map((part) => partKey(part.sha256))),
    ),
  ].toSorted();

async function archived(id: string, snapshots = 2): Promise<SandboxManifest> {
  const manifest = await rig.sandbox({ id, snapshots });
  await rig.manifests.write(manifest, { replaces: "absent" }, CALL);
  return manifest;
}

describe("GarbageCollection", () => {
  it("removes old parts that nothing names, and no others", async () => {
    const kept = [await archived("s1"), await archived("s2", 5)];
    const template = await rig.template();
    await rig.manifests.write(template, { replaces: "absent" }, CALL);
    const { key } = await rig.key(sandboxOf("t1", "s3"));
    const garbage = await rig.write(noise(500), key);
    await clock.advance(GRACE_MS + HOUR_MS);
    const young = await rig.write(noise(500), key);
    const report = await collect();
    expect(report).toEqual({ manifests: 3, parts: garbage.parts.length, bytes: garbage.storedBytes, unreadable: [] });
    expect(rig.store.keys(PARTS_PREFIX)).toEqual(
      [
        ...namedBy(...kept),
        ...[...template.base.object.parts, ...young.parts].map(({ sha256 }) => partKey(sha256)),
      ].toSorted(),
    );
    expect(rig.store.keys(SWEEP_LIST_KEY)).toEqual([]);
    expect((await collect()).parts).toBe(0);
  });

  it("counts the same, and removes nothing, in a dry run", async () => {
    await archived("s1");
    const { key } = await rig.key(sandboxOf("t1", "s3"));
    const garbage = await rig.write(noise(500), key);
    await clock.advance(GRACE_MS + HOUR_MS);
    const before = rig.store.keys();
    expect(await collect({ dryRun: true })).toMatchObject({ parts: garbage.parts.length, bytes: garbage.storedBytes });
    expect(rig.store.keys()).toEqual(before);
  });

  it("takes rounds if it has room for few digests and few parts at once", async () => {
    collection = new GarbageCollection({ store: rig.store, manifests: rig.manifests, clock, capacity: 16, listed: 5 });
    const kept = [await archived("s1", 6), await archived("s2", 6)];
    const { key } = await rig.key(sandboxOf("t1", "s3"));
    const garbage = await rig.write(noise(1500), key);
    await clock.advance(GRACE_MS + HOUR_MS);
    expect(await collect()).toMatchObject({ manifests: 2, parts: garbage.parts.length });
    expect(rig.store.keys(PARTS_PREFIX)).toEqual(namedBy(...kept));
  });

  it.each(["damaged", "of another key", "under a wrong key"])(
    "removes nothing if a manifest is %s, and names it",
    async (kind) => {
      await archived("s1");
      const { key } = await rig.key(sandboxOf("t1", "s3"));
      await rig.write(noise(500), key);
      const at = kind === "under a wrong key" ? "v1/manifests/stranger" : manifestKey(sandboxOf("t1", "s2"));
      if (kind === "of another key") {
        const stranger = new Rig({ clock, store: rig.store });
        await stranger.manifests.write(await stranger.sandbox({ id: "s2" }), { replaces: "absent" }, CALL);
      } else rig.store.overwrite(at, Buffer.from("no manifest"));
      await clock.advance(GRACE_MS + HOUR_MS);
      const before = rig.store.keys();
      const report = await collect();
      expect(report).toMatchObject({ parts: 0, unreadable: [{ key: at }] });
      expect(rig.store.keys()).toEqual(before);
    },
  );

  it("removes nothing if a manifest becomes unreadable while it waits", async () => {
    const { owner } = await archived("s1");
    const { key } = await rig.key(sandboxOf("t1", "s3"));
    await rig.write(noise(500), key);
    await clock.advance(GRACE_MS + HOUR_MS);
    const before = rig.store.keys();
    rig.store.step = (operation, at) => {
      if (operation === "put" && at === SWEEP_LIST_KEY) rig.store.overwrite(manifestKey(owner), Buffer.from("x"));
    };
    expect(await collect()).toMatchObject({ parts: 0, unreadable: [{ key: manifestKey(owner) }] });
    expect(rig.store.keys()).toEqual(before);
  });

  it("fails, and removes nothing, if the store does not answer", async () => {
    await archived("s1");
    await clock.advance(GRACE_MS + HOUR_MS);
    rig.store.step = (operation) => {
      if (operation === "get") throw new Error("no answer");
    };
    await expect(collect()).rejects.toThrow("no answer");
  });

  it("lets one of several run", async () => {
    const { key } = await rig.key(sandboxOf("t1", "s3"));
    await rig.write(noise(500), key);
    await clock.advance(GRACE_MS + HOUR_MS);
    const first = collect();
    while (rig.store.keys(SWEEP_LIST_KEY).length === 0) await clock.advance(0);
    expect((await failureOf(collection.collect({}, CALL))).reason).toBe("ARCHIVE_CHANGED");
    expect((await first).parts).toBeGreaterThan(0);
  });

  it("goes on after one that died has left its list, when that is void", async () => {
    const { key } = await rig.key(sandboxOf("t1", "s3"));
    const garbage = await rig.write(noise(500), key);
    await clock.advance(GRACE_MS + HOUR_MS);
    rig.store.step = (operation) => {
      if (operation === "delete") throw new Error("died");
    };
    await expect(collect()).rejects.toThrow("died");
    rig.store.step = () => undefined;
    expect(rig.store.keys(SWEEP_LIST_KEY)).toHaveLength(1);
    expect((await failureOf(collect())).reason).toBe("ARCHIVE_CHANGED");
    await clock.advance(2 * HOUR_MS);
    expect((await collect()).parts).toBe(garbage.parts.length);
    expect(rig.store.keys(SWEEP_LIST_KEY)).toEqual([]);
  });
});

describe("a part that is named again while it is swept", () => {
  /** A manifest whose objects are old, and named by nothing. */
  async function forgotten(): Promise<SandboxManifest> {
    const manifest = await rig.sandbox({ id: "s9" });
    await clock.advance(GRACE_MS + HOUR_MS);
    return manifest;
  }
  const old = (manifest: SandboxManifest) => ({ replaces: "absent", old: [...objectsOf(manifest)] }) as const;

  it("survives if its manifest comes after the first look and before the second", async () => {
    const manifest = await forgotten();
    let written: Promise<unknown> | undefined;
    rig.store.step = async (operation, at) => {
      if (operation === "put" && at === SWEEP_LIST_KEY) {
        rig.store.step = () => undefined;
        written = rig.manifests.write(manifest, old(manifest), CALL);
        await written;
      }
    };
    expect((await collect()).parts).toBe(0);
    await written;
    expect(rig.store.keys(PARTS_PREFIX)).toEqual(namedBy(manifest));
  });

  it("survives if its manifest comes while the list is there, and the writer waits until that is gone", async () => {
    const manifest = await forgotten();
    const state = { isCollected: false, isWritten: false };
    const report = collection.collect({}, CALL).finally(() => {
      state.isCollected = true;
    });
    report.catch(() => undefined);
    while (rig.store.keys(SWEEP_LIST_KEY).length === 0) await clock.advance(1000);
    const written = rig.manifests.write(manifest, old(manifest), CALL).then(() => {
      state.isWritten = true;
      return rig.store.keys(SWEEP_LIST_KEY);
    });
    written.catch(() => undefined);
    // No time passes until the manifest is there, however long its encryption takes.
    const giveUpAtMs = performance.now() + PATIENCE_MS;
    const isPatient = (): boolean => performance.now() < giveUpAtMs;
    while (isPatient() && rig.store.keys(manifestKey(manifest.owner)).length === 0) await clock.advance(0);
    while (isPatient() && !(state.isCollected && state.isWritten)) await clock.advance(1000);
    expect((await report).parts).toBe(0);
    expect(await written).toEqual([]);
    expect(rig.store.keys(PARTS_PREFIX)).toEqual(namedBy(manifest));
  });

  it("is reported to the writer if it was too late, whenever that was", async () => {
    const outcomes: string[] = [];
    for (let steps = 1; ; steps += 1) {
      clock = createManualClock();
      rig = new Rig({ clock });
      collection = new GarbageCollection({ store: rig.store, manifests: rig.manifests, clock });
      const manifest = await forgotten();
      let left = steps;
      let written: Promise<"stored" | "refused"> | undefined;
      rig.store.step = (_operation) => {
        left -= 1;
        if (left !== 0) return;
        rig.store.step = () => undefined;
        written = rig.manifests.write(manifest, old(manifest), CALL).then(
          () => "stored",
          (failure: unknown) => {
            expect(failure).toMatchObject({ reason: "ARCHIVE_DAMAGED", admitted: "yes" });
            return "refused";
          },
        );
      };
      await collect();
      if (written === undefined) {
        expect(outcomes).toEqual(expect.arrayContaining(["stored", "refused"]));
        return;
      }
      let outcome: string | undefined;
      const seen = written.then((one) => {
        outcome = one;
      });
      while (outcome === undefined) await clock.advance(1000);
      await seen;
      const isWhole = rig.store.keys(PARTS_PREFIX).join() === namedBy(manifest).join();
      expect({ steps, outcome }).toEqual({ steps, outcome: isWhole ? "stored" : "refused" });
      outcomes.push(outcome);
    }
  });

  it("survives or is reported in any order of steps, with lists that are behind", async () => {
    const outcomes = new Set<string>();
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      clock = createManualClock();
      rig = new Rig({ clock });
      collection = new GarbageCollection({ store: rig.store, manifests: rig.manifests, clock, listed: 3 });
      await archived("s1", 1);
      const manifest = await forgotten();
      rig.store.listLagMs = 30_000;
      const outcome = await interleave(seed, manifest);
      const isWhole = namedBy(manifest).every((key) => rig.store.objects.has(key));
      expect({ seed, outcome }).toEqual({ seed, outcome: isWhole ? "stored" : "refused" });
      outcomes.add(outcome);
    }
    expect([...outcomes].toSorted()).toEqual(["refused", "stored"]);
  }, 120_000);

  /** Collects and writes the manifest, and lets chance say which of the steps that wait comes next, and when time passes. */
  async function interleave(seed: number, manifest: SandboxManifest): Promise<"stored" | "refused"> {
    let random = seed;
    const choose = (most: number): number => {
      random = (Math.imul(random, 1_664_525) + 1_013_904_223) >>> 0;
      return (random >>> 8) % most;
    };
    const waiting: (() => void)[] = [];
    rig.store.step = async () => {
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
      });
    };
    const state = { running: 2 };
    const ended = (): void => {
      state.running -= 1;
    };
    // A removal that waits too long fails by its deadline. What it was to remove is there or not, as for the writer.
    const collected = collection.collect({}, CALL).then(ended, ended);
    const write = async (): Promise<unknown> =>
      await rig.manifests.write(manifest, old(manifest), CALL).then(
        () => undefined,
        (failure: unknown) => failure,
      );
    let written: Promise<unknown> | undefined;
    const begin = choose(60);
    for (let turn = 0; state.running > 0; turn += 1) {
      if (turn === begin) written = write().finally(ended);
      if (turn > MOST_TURNS) throw new Error(`seed ${seed} does not end`);
      waiting.splice(choose(Math.max(1, waiting.length)), 1)[0]?.();
      await clock.advance(choose(4) === 0 ? choose(20_000) : 0);
    }
    await collected;
    const failure = await written;
    if (failure !== undefined) expect(failure).toMatchObject({ reason: "ARCHIVE_DAMAGED", admitted: "yes" });
    return failure === undefined ? "stored" : "refused";
  }
});
