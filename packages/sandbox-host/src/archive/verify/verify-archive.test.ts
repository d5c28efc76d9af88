import { describe, expect, it } from "@jest/globals";
import { CALL, failureOf, Rig } from "../archive.suite.ts";
import type { ListedSandbox } from "../manifest/list-archives.ts";
import { listArchives } from "../manifest/list-archives.ts";
import type { SandboxManifest } from "../manifest/manifest.ts";
import { objectsOf } from "../manifest/manifest.ts";
import { manifestKey, sandboxOf } from "../manifest/owner.ts";
import { partKey } from "../object/object-record.ts";
import { verifyArchive, type VerifyReport } from "./verify-archive.ts";

const OWNER = sandboxOf("t1", "s1");

async function stored(rig: Rig, change: (manifest: SandboxManifest) => object = () => ({})): Promise<SandboxManifest> {
  const manifest = await rig.sandbox();
  const changed = { ...manifest, ...change(manifest) };
  await rig.manifests.write(changed, { replaces: "absent" }, CALL);
  return changed;
}

const verify = async (rig: Rig, quick = false, atLeastRevision = 1): Promise<VerifyReport> =>
  await verifyArchive(rig, { owner: OWNER, quick, atLeastRevision }, CALL);

const faultsOf = ({ faults }: VerifyReport): readonly unknown[] =>
  faults.map(({ metadata: { fault, part } }) => (part === undefined ? fault : `${fault} ${part}`));

describe("verifyArchive", () => {
  it("finds nothing in a whole archive, and says what it read", async () => {
    const rig = new Rig();
    const objects = [...objectsOf(await stored(rig))];
    for (const quick of [false, true])
      expect(await verify(rig, quick)).toEqual({
        objects: objects.length,
        parts: objects.reduce((sum, { parts }) => sum + parts.length, 0),
        storedBytes: objects.reduce((sum, { storedBytes }) => sum + storedBytes, 0),
        faults: [],
      });
  });

  it("reports each part that is wrong, and what is wrong with it", async () => {
    const rig = new Rig();
    const manifest = await stored(rig);
    const [first, second] = manifest.snapshots.map(({ object }) => object);
    const key = (index: number): string => partKey(first!.parts[index]!.sha256);
    rig.store.objects.delete(key(0));
    rig.store.overwrite(key(1), Buffer.alloc(first!.parts[1]!.bytes));
    rig.store.overwrite(partKey(second!.parts[2]!.sha256), Buffer.alloc(3));
    expect(faultsOf(await verify(rig))).toEqual(["missing 0", "wrong digest 1", "wrong size 2"]);
    expect(faultsOf(await verify(rig, true))).toEqual(["missing 0", "wrong size 2"]);
  });

  it("reports parts of another object, and content that is not what was written", async () => {
    const rig = new Rig();
    await stored(rig, ({ snapshots: [a, b] }) => ({
      snapshots: [
        { ...a, object: { ...a!.object, parts: b!.object.parts } },
        { ...b, object: { ...b!.object, plainBytes: 1 } },
      ],
    }));
    expect(faultsOf(await verify(rig))).toEqual([
      "not authentic 0",
      "not authentic 1",
      "not authentic 2",
      "wrong content",
    ]);
  });

  it("reports a chain with a missing parent", async () => {
    const rig = new Rig();
    await stored(rig, ({ snapshots: [, b] }) => ({ snapshots: [b], continuesFrom: null }));
    const { faults } = await verify(rig, true);
    expect(faults.map(({ metadata }) => metadata["fault"])).toEqual(["missing parent"]);
    expect(faults[0]!.message).toContain("101");
  });

  it("reports a manifest that is missing, damaged or older than known", async () => {
    const rig = new Rig();
    const reasons = async (atLeastRevision?: number): Promise<readonly string[]> =>
      (await verify(rig, false, atLeastRevision)).faults.map(({ reason }) => reason);
    expect(await reasons()).toEqual(["ARCHIVE_NOT_FOUND"]);
    await stored(rig);
    expect(await reasons(2)).toEqual(["ARCHIVE_OUTDATED"]);
    rig.store.overwrite(manifestKey(OWNER), Buffer.from("x"));
    expect(await reasons()).toEqual(["ARCHIVE_DAMAGED"]);
  });

  it("fails if the store does not answer, which is no fault of the archive", async () => {
    const rig = new Rig();
    await stored(rig);
    rig.store.step = () => {
      throw new Error("no answer");
    };
    await expect(verify(rig)).rejects.toThrow("no answer");
  });
});

describe("listArchives", () => {
  const list = async (rig: Rig, tenant: string): Promise<readonly ListedSandbox[]> => {
    const all: ListedSandbox[] = [];
    for await (const one of listArchives(rig, tenant, CALL)) all.push(one);
    return all;
  };

  it("has the sandboxes of one tenant, with their sizes, and those that cannot be read", async () => {
    const rig = new Rig();
    const manifest = await stored(rig);
    const template = await rig.template();
    await rig.manifests.write(template, { replaces: "absent" }, CALL);
    await rig.manifests.write(await rig.sandbox({ tenant: "t2" }), { replaces: "absent" }, CALL);
    const more = ["s2", "s3", "s4", "s5"];
    for (const id of more) await rig.manifests.write(await rig.sandbox({ id }), { replaces: "absent" }, CALL);
    rig.store.overwrite(manifestKey(sandboxOf("t1", "s3")), Buffer.from("x"));
    const listed = await list(rig, "t1");
    expect(listed.map(({ sandbox }) => sandbox)).toEqual(["s1", ...more]);
    const parts = [...objectsOf(manifest)].reduce((sum, { storedBytes }) => sum + storedBytes, 0);
    expect(listed[0]).toEqual({
      sandbox: "s1",
      revision: 1,
      epoch: 1,
      archivedTurn: 2,
      archivedAtMs: 7,
      snapshots: 2,
      plainBytes: 450,
      storedBytes: parts + rig.store.bytesOf(manifestKey(OWNER)).byteLength,
    });
    expect(listed[2]).toMatchObject({ sandbox: "s3", failure: { reason: "ARCHIVE_DAMAGED" } });
    expect(await list(rig, "t3")).toEqual([]);
    expect((await failureOf(list(rig, "*"))).reason).toBe("INVALID_ARGUMENT");
  });
});
