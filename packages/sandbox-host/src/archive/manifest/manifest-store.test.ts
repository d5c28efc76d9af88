import { describe, expect, it } from "@jest/globals";
import { hasReason, SandboxError } from "@turnbox/core";
import fc from "fast-check";
import { FakeKey, FakeKeyWrap } from "../../key-wrap/fake/fake-key-wrap.ts";
import { CALL, DIGEST, failureOf, Rig } from "../archive.suite.ts";
import { partKey } from "../object/object-record.ts";
import { bodyOf } from "./decode-manifest.ts";
import { sealManifest } from "./envelope.ts";
import type { SandboxManifest } from "./manifest.ts";
import { manifestKey, sandboxOf, templateOf } from "./owner.ts";

const SEEDS = process.env["TURNBOX_FULL"] === "1" ? 20_000 : 3000;
const OWNER = sandboxOf("t1", "s1");
const KEY = manifestKey(OWNER);

async function stored(rig: Rig): Promise<SandboxManifest> {
  const manifest = await rig.sandbox();
  await rig.manifests.write(manifest, { replaces: "absent" }, CALL);
  return manifest;
}

describe("ManifestStore", () => {
  it("reads what it wrote, on another host with the same key", async () => {
    const wrap = new FakeKeyWrap();
    const rig = new Rig({ wrap });
    const manifest = await stored(rig);
    const other = new Rig({ wrap, store: rig.store });
    const { manifest: again, version, storedBytes } = await other.manifests.read(OWNER, {}, CALL);
    expect(again).toEqual(manifest);
    expect(version).toMatchObject({ revision: 1, epoch: 1 });
    expect(storedBytes).toBe(rig.store.bytesOf(KEY).byteLength);
    const key = await other.keys.openOf(again, again.key, CALL);
    for (const { object } of again.snapshots) expect(await other.read(object, key)).toHaveLength(150);
  });

  it("keeps templates beside sandboxes, under the digest of their base", async () => {
    const rig = new Rig();
    const template = await rig.template();
    await rig.manifests.write(template, { replaces: "absent" }, CALL);
    expect((await rig.manifests.read(templateOf("t1", DIGEST), {}, CALL)).manifest).toEqual(template);
    const wrong = { ...template, base: { ...template.base, digest: "cd" } };
    expect(await failureOf(rig.manifests.write(wrong, { replaces: "absent" }, CALL))).toMatchObject({
      metadata: { field: "base.digest" },
    });
  });

  it("shows nothing of the body, and no data key", async () => {
    const rig = new Rig();
    const manifest = await stored(rig);
    const bytes = rig.store.bytesOf(KEY);
    for (const text of ["LANG", "example.com", "snap-1"]) expect(bytes.includes(text)).toBe(false);
    const key = await rig.keys.openOf(manifest, manifest.key, CALL);
    expect(bytes.includes(key.reveal())).toBe(false);
    expect(bytes.includes(key.reveal().toString("base64"))).toBe(false);
  });

  it("says that there is none", async () => {
    expect((await failureOf(new Rig().manifests.read(OWNER, {}, CALL))).reason).toBe("ARCHIVE_NOT_FOUND");
  });

  it("finds a bit that was flipped anywhere in a manifest", async () => {
    const rig = new Rig();
    await stored(rig);
    const good = rig.store.bytesOf(KEY);
    for (let seed = 0; seed < SEEDS; seed += 1) {
      const bad = Buffer.from(good);
      const at = Math.imul(seed, 2_654_435_761) >>> 0;
      bad[at % bad.byteLength]! ^= 1 << ((at >>> 16) % 8);
      rig.store.overwrite(KEY, bad);
      const failure = await failureOf(rig.manifests.read(OWNER, {}, CALL));
      expect({ seed, reason: failure.reason }).toEqual({
        seed,
        reason: expect.stringMatching(/^ARCHIVE_(DAMAGED|KEY_WRONG)$/),
      });
      if (failure.reason === "ARCHIVE_DAMAGED") expect(failure.metadata["fault"]).toBeDefined();
    }
  }, 300_000);

  it("finds a manifest that is cut off anywhere, or longer", async () => {
    const rig = new Rig();
    await stored(rig);
    const good = rig.store.bytesOf(KEY);
    for (let length = 0; length < good.byteLength; length += 1) {
      rig.store.overwrite(KEY, good.subarray(0, length));
      expect((await failureOf(rig.manifests.read(OWNER, {}, CALL))).reason).toBe("ARCHIVE_DAMAGED");
    }
    rig.store.overwrite(KEY, Buffer.concat([good, Buffer.alloc(1)]));
    expect((await failureOf(rig.manifests.read(OWNER, {}, CALL))).reason).toBe("ARCHIVE_DAMAGED");
  }, 120_000);

  it("finds the manifest of another sandbox and of another tenant", async () => {
    const rig = new Rig();
    await stored(rig);
    for (const from of [
      { tenant: "t1", id: "s2" },
      { tenant: "t2", id: "s1" },
    ]) {
      const other = await rig.sandbox(from);
      await rig.manifests.write(other, { replaces: "absent" }, CALL);
      rig.store.overwrite(KEY, rig.store.bytesOf(manifestKey(other.owner)));
      expect(await failureOf(rig.manifests.read(OWNER, {}, CALL))).toMatchObject({
        reason: "ARCHIVE_DAMAGED",
        metadata: { fault: "wrong owner", tenant: "t1", sandbox: "s1" },
      });
      // Also with the owner in its header made to fit.
      const text = rig.store.bytesOf(KEY).toString("latin1");
      const forged = text
        .replaceAll(`"tenant":"${from.tenant}"`, '"tenant":"t1"')
        .replaceAll(`"id":"${from.id}"`, '"id":"s1"');
      rig.store.overwrite(KEY, Buffer.from(forged, "latin1"));
      expect(await failureOf(rig.manifests.read(OWNER, {}, CALL))).toMatchObject({ reason: "ARCHIVE_DAMAGED" });
    }
  });

  it("finds an older manifest that was put back", async () => {
    const rig = new Rig();
    const manifest = await rig.sandbox();
    const first = await rig.manifests.write(manifest, { replaces: "absent" }, CALL);
    const old = rig.store.bytesOf(KEY);
    await rig.manifests.write({ ...manifest, revision: 2 }, { replaces: first }, CALL);
    expect((await rig.manifests.read(OWNER, { atLeastRevision: 2 }, CALL)).version.revision).toBe(2);
    rig.store.overwrite(KEY, old);
    expect(await failureOf(rig.manifests.read(OWNER, { atLeastRevision: 2 }, CALL))).toMatchObject({
      reason: "ARCHIVE_OUTDATED",
      metadata: { revision: "1", known: "2" },
    });
  });

  it("names the key that a manifest needs", async () => {
    const rig = new Rig({ wrap: new FakeKeyWrap(new FakeKey("fake:needed")) });
    await stored(rig);
    const other = new Rig({ store: rig.store, wrap: new FakeKeyWrap(new FakeKey("fake:other")) });
    expect(await failureOf(other.manifests.read(OWNER, {}, CALL))).toMatchObject({
      reason: "ARCHIVE_KEY_WRONG",
      metadata: { keyId: "fake:needed" },
    });
  });

  it("lets one of two writers win, and tells the other what is there", async () => {
    const rig = new Rig();
    const manifest = await rig.sandbox();
    const first = await rig.manifests.write(manifest, { replaces: "absent" }, CALL);
    expect(await failureOf(rig.manifests.write(manifest, { replaces: "absent" }, CALL))).toMatchObject({
      reason: "ARCHIVE_CHANGED",
      metadata: { revision: "1", epoch: "1" },
    });
    await rig.manifests.write({ ...manifest, revision: 5, epoch: 2 }, { replaces: first }, CALL);
    const lost = rig.manifests.write({ ...manifest, revision: 2 }, { replaces: first }, CALL);
    expect(await failureOf(lost)).toMatchObject({ reason: "ARCHIVE_CHANGED", metadata: { revision: "5", epoch: "2" } });
  });

  it("never replaces a manifest by one of an older epoch or of no higher revision", async () => {
    const rig = new Rig();
    const manifest = { ...(await rig.sandbox()), revision: 4, epoch: 4 };
    const first = await rig.manifests.write(manifest, { replaces: "absent" }, CALL);
    const write = async (revision: number, epoch: number): Promise<string> =>
      (await failureOf(rig.manifests.write({ ...manifest, revision, epoch }, { replaces: first }, CALL))).reason;
    expect(await write(9, 3)).toBe("ARCHIVE_CHANGED");
    expect(await write(4, 4)).toBe("INVALID_ARGUMENT");
    expect(await write(3, 5)).toBe("INVALID_ARGUMENT");
    expect((await rig.manifests.read(OWNER, {}, CALL)).version).toEqual(first);
  });

  it("knows its own write again if the answer to it was lost", async () => {
    const rig = new Rig();
    const manifest = await rig.sandbox();
    const { put } = rig.store;
    rig.store.put = async (...args) => {
      await put.apply(rig.store, args);
      throw new SandboxError("OBJECT_CHANGED", "the second attempt found the first one");
    };
    const version = await rig.manifests.write(manifest, { replaces: "absent" }, CALL);
    expect((await rig.manifests.read(OWNER, {}, CALL)).version).toEqual(version);
  });

  it.each<readonly [string, (manifest: SandboxManifest) => object]>([
    ["snapshots[1].id", ({ snapshots: [a, b] }) => ({ snapshots: [a, { ...b, id: a!.id }] })],
    ["snapshots[0].kind", ({ snapshots: [a] }) => ({ snapshots: [{ ...a, kind: "other" }], continuesFrom: null })],
    [
      "snapshots[0].object.parts[0].bytes",
      ({ snapshots: [a] }) => ({
        snapshots: [
          {
            ...a,
            object: { ...a!.object, parts: [{ ...a!.object.parts[0], bytes: 17 }, ...a!.object.parts.slice(1)] },
          },
        ],
      }),
    ],
    [
      "snapshots[0].object.storedBytes",
      ({ snapshots: [a] }) => ({ snapshots: [{ ...a, object: { ...a!.object, storedBytes: 99 } }] }),
    ],
    [
      "snapshots[0].object.format",
      ({ snapshots: [a] }) => ({ snapshots: [{ ...a, object: { ...a!.object, format: 2 } }] }),
    ],
    ["continuesFrom", () => ({ continuesFrom: "snap-7" })],
    ["archivedTurn", () => ({ archivedTurn: 10 })],
    [
      "session.timing.onTimeout",
      ({ session }) => ({ session: { ...session, timing: { ...session.timing, onTimeout: "x" } } }),
    ],
    ["session.ports[0]", ({ session }) => ({ session: { ...session, ports: [0] } })],
    ["keys", () => ({ keys: [] })],
    ["more", () => ({ more: 1 })],
  ])("refuses to store, and to read, a manifest with a wrong %s", async (field, change) => {
    const rig = new Rig();
    const manifest = await rig.sandbox();
    const wrong = { ...manifest, ...change(manifest) };
    const failure = await failureOf(rig.manifests.write(wrong, { replaces: "absent" }, CALL));
    expect(failure.reason).toBe("ARCHIVE_DAMAGED");
    expect(failure.metadata["field"]).toBe(field === "keys" ? "key" : field);
    expect(rig.store.keys(KEY)).toEqual([]);
    const key = await rig.keys.openOf(manifest, manifest.key, CALL);
    rig.store.overwrite(KEY, await sealManifest(wrong, bodyOf(wrong), key));
    expect((await failureOf(rig.manifests.read(OWNER, {}, CALL))).metadata).toMatchObject(failure.metadata);
  });

  it("fails with nothing but its own reasons on any bytes", async () => {
    const rig = new Rig();
    await stored(rig);
    const good = rig.store.bytesOf(KEY);
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), fc.nat(good.byteLength), async (bytes, keep) => {
        rig.store.overwrite(KEY, Buffer.concat([good.subarray(0, keep), bytes]));
        const failure: unknown = await rig.manifests.read(OWNER, {}, CALL).then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        const isWhole = rig.store.bytesOf(KEY).equals(good);
        expect(isWhole || hasReason(failure, "ARCHIVE_DAMAGED", "ARCHIVE_KEY_WRONG")).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it("refuses ids that would be another key", async () => {
    const rig = new Rig();
    for (const id of ["", "..", "a/b", "a..b", "-a", "a\n", "x".repeat(129)])
      expect((await failureOf(rig.manifests.read(sandboxOf("t1", id), {}, CALL))).reason).toBe("INVALID_ARGUMENT");
    expect((await failureOf(rig.manifests.read(sandboxOf("*", "s1"), {}, CALL))).reason).toBe("INVALID_ARGUMENT");
  });

  it("looks for the objects of the parent of a fork after it has written the fork", async () => {
    const rig = new Rig();
    const parent = await stored(rig);
    const fork = await rig.sandbox({ id: "s2" });
    const [ancestor] = parent.snapshots;
    const entry = parent.keys[0]!;
    const manifest: SandboxManifest = { ...fork, keys: [...fork.keys, entry], ancestors: [ancestor!].map(streamOf) };
    const old = manifest.ancestors.map(({ object }) => object);
    const version = await rig.manifests.write(manifest, { replaces: "absent", old }, CALL);
    const read = await rig.manifests.read(sandboxOf("t1", "s2"), {}, CALL);
    const key = await rig.keys.openOf(read.manifest, ancestor!.object.key, CALL);
    expect(await rig.read(read.manifest.ancestors[0]!.object, key)).toHaveLength(150);
    rig.store.objects.delete(partKey(old[0]!.parts[1]!.sha256));
    const again = rig.manifests.write({ ...manifest, revision: 2 }, { replaces: version, old }, CALL);
    expect(await failureOf(again)).toMatchObject({
      reason: "ARCHIVE_DAMAGED",
      admitted: "yes",
      metadata: { fault: "missing", object: old[0]!.id },
    });
  });
});

const streamOf = ({ guid, parentGuid, streamFormat, object }: SandboxManifest["snapshots"][number]) => ({
  guid,
  parentGuid,
  streamFormat,
  object,
});
