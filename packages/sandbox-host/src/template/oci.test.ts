import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { appendFile, chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createScriptedCommandRunner, type ScriptedCommandRunner } from "@turnbox/core/testing";
import { create, Header } from "tar";
import { buildOci } from "./oci.ts";
import { chooseEntry, type Descriptor, parseManifest } from "./oci-document.ts";

const LAYER = "application/vnd.oci.image.layer.v1.tar+gzip";
const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const CONFIG = "application/vnd.oci.image.config.v1+json";
const LIMITS = { maxBytes: 1_000_000, maxEntries: 10 };

let directory: string;
let layout: string;
/** Every program succeeds and does nothing. */
let runner: ScriptedCommandRunner;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-oci-"));
  layout = join(directory, "image");
  await mkdir(join(layout, "blobs/sha256"), { recursive: true });
  await mkdir(join(directory, "scratch"));
  runner = createScriptedCommandRunner(() => ({ kind: "exits" }));
});
afterEach(async () => {
  await rm(directory, { recursive: true });
});

interface Blob {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

const fileOf = ({ digest }: Blob): string => join(layout, "blobs", digest.replace(":", "/"));

async function addBlob(mediaType: string, content: Buffer | object): Promise<Blob> {
  const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
  const blob = {
    mediaType,
    digest: `sha256:${createHash("sha256").update(bytes).digest("hex")}`,
    size: bytes.length,
  };
  await writeFile(fileOf(blob), bytes);
  return blob;
}

const writeIndex = async (manifests: readonly object[]): Promise<void> => {
  await writeFile(join(layout, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
  await writeFile(join(layout, "index.json"), JSON.stringify({ schemaVersion: 2, manifests }));
};

/** A layout of one image with these tar archives as its layers. */
async function writeImage(...archives: readonly Buffer[]): Promise<readonly Blob[]> {
  const config = await addBlob(CONFIG, { architecture: "amd64", os: "linux" });
  const layers: Blob[] = [];
  for (const archive of archives) layers.push(await addBlob(LAYER, gzipSync(archive)));
  const manifest = await addBlob(MANIFEST, { schemaVersion: 2, config, layers });
  await writeIndex([{ ...manifest, annotations: { "org.opencontainers.image.ref.name": "v1" } }]);
  return layers;
}

type EntryType = "File" | "Directory" | "SymbolicLink" | "CharacterDevice" | "FIFO";

function entry(path: string, type: EntryType = "File", content = ""): Buffer {
  const block = Buffer.alloc(512);
  const size = Buffer.byteLength(content);
  new Header({ path, type, size, mode: 0o644, uid: 0, gid: 0, mtime: new Date(0) }).encode(block);
  return Buffer.concat([block, Buffer.alloc(Math.ceil(size / 512) * 512, 0).fill(content, 0, size)]);
}
const archive = (...entries: readonly Buffer[]): Buffer => Buffer.concat([...entries, Buffer.alloc(1024)]);
const GOOD = archive(entry("bin", "Directory"), entry("bin/bash", "File", "x"));

const build = async (
  options: { readonly ref?: string; readonly path?: string; readonly signal?: AbortSignal } = {},
) => {
  const { ref = null, path = layout, signal = new AbortController().signal } = options;
  const paths = { path, output: join(directory, "root.tar"), scratch: join(directory, "scratch") };
  await buildOci({ ...paths, ref }, { runner, signal, limits: LIMITS });
};
const programs = (): readonly string[] => runner.calls.map(({ command, args }) => `${command} ${args[0] ?? ""}`);
const refused = async (message: RegExp): Promise<void> => {
  await expect(build()).rejects.toMatchObject({ reason: "TEMPLATE_INVALID", message: expect.stringMatching(message) });
  expect(programs()).toEqual(["umoci --version"]);
};

describe("buildOci refuses, before anything is unpacked,", () => {
  it("a layer that does not match its digest or size", async () => {
    const [layer] = await writeImage(GOOD);
    if (layer === undefined) throw new Error("no layer");
    const bytes = await readFile(fileOf(layer));
    bytes[20] = (bytes[20] ?? 0) ^ 1;
    await writeFile(fileOf(layer), bytes);
    await refused(/sha256:[0-9a-f]{64} does not match its digest/);
    runner = createScriptedCommandRunner(() => ({ kind: "exits" }));
    await appendFile(fileOf(layer), "x");
    await refused(/has \d+ bytes instead of \d+/);
    runner = createScriptedCommandRunner(() => ({ kind: "exits" }));
    await rm(fileOf(layer));
    await refused(/is missing/);
  });

  it.each([
    ["entries that lead out of the root", archive(entry("a/../../b")), /leads out of the root/],
    ["devices", archive(entry("null", "CharacterDevice")), /is a CharacterDevice/],
    ["pipes", archive(entry("pipe", "FIFO")), /is a FIFO/],
    ["what is no archive", Buffer.from("no archive at all".repeat(100)), /./],
    ["no files at all", archive(), /it has no files|archive/],
  ])("%s", async (_what, layer, message) => {
    await writeImage(layer);
    await refused(message);
  });

  it("more bytes or entries than the limits, counted over all layers", async () => {
    const big = archive(entry("big", "File", "x".repeat(600_000)));
    await writeImage(big, archive(entry("other", "File", "y".repeat(600_000))));
    await refused(/more than 1000000 bytes/);
    runner = createScriptedCommandRunner(() => ({ kind: "exits" }));
    const six = (name: string): Buffer =>
      archive(...[1, 2, 3, 4, 5, 6].map((number) => entry(`${name}${String(number)}`)));
    await writeImage(six("a"), six("b"));
    await refused(/more than 10 entries/);
  });

  it("sparse files, whose holes would fill the disk", async () => {
    const record = "22 GNU.sparse.major=1\n";
    const block = Buffer.alloc(512);
    new Header({ path: "PaxHeader/x", type: "ExtendedHeader", size: record.length, mode: 0o644 }).encode(block);
    const body = Buffer.alloc(512);
    body.write(record);
    await writeImage(archive(block, body, entry("x")));
    await refused(/sparse/);
  });

  it("a directory that is no layout, and an archive of none", async () => {
    await refused(/no OCI image layout/);
    const file = join(directory, "other.tar");
    await create({ file, cwd: directory }, ["image"]);
    await expect(build({ path: file })).rejects.toMatchObject({ reason: "TEMPLATE_INVALID" });
    await expect(build({ path: join(directory, "nope") })).rejects.toMatchObject({ reason: "FILE_NOT_FOUND" });
  });

  it("a name that the layout does not have, and lists those that it has", async () => {
    await writeImage(GOOD);
    await expect(build({ ref: "v2" })).rejects.toMatchObject({ message: expect.stringMatching(/"v2"; it has "v1"/) });
  });

  it("everything without umoci, with how to install it", async () => {
    await writeImage(GOOD);
    runner = createScriptedCommandRunner(() => ({ kind: "missing" }));
    await expect(build()).rejects.toMatchObject({
      reason: "COMMAND_MISSING",
      message: expect.stringContaining("apt-get install --no-install-recommends umoci"),
    });
  });

  it("a build whose signal has aborted", async () => {
    await writeImage(GOOD);
    await expect(build({ signal: AbortSignal.abort() })).rejects.toMatchObject({ name: "AbortError" });
  });
});

describe("buildOci", () => {
  /** In the place of umoci: makes the root, as the layer would. */
  const unpacking = (shell: string): void => {
    runner = createScriptedCommandRunner(() => ({ kind: "exits" }));
    const { run } = runner;
    runner = {
      ...runner,
      run: async (spec, options) => {
        if (spec.command === "umoci" && spec.args[0] === "raw") {
          await mkdir(join(spec.cwd ?? "", "root/bin"), { recursive: true });
          await writeFile(join(spec.cwd ?? "", "root/bin", shell), "");
          await chmod(join(spec.cwd ?? "", "root/bin", shell), 0o755);
        }
        return await run(spec, options);
      },
    };
  };

  it("takes what the layers have in /dev, unpacks, completes the root and packs it", async () => {
    await writeImage(GOOD, archive(entry("dev/null", "CharacterDevice")));
    unpacking("bash");
    await build({ ref: "v1" });
    expect(programs()).toEqual(["umoci --version", "umoci raw", "tar -C"]);
    expect(await readdir(join(directory, "scratch/root"))).toContain("workspace");
  });

  it("refuses a root without a shell", async () => {
    await writeImage(GOOD);
    unpacking("sh");
    await expect(build()).rejects.toMatchObject({ message: expect.stringContaining("there is no bash") });
  });

  it("takes a layout out of an archive, without its links and other files", async () => {
    await writeImage(GOOD);
    await writeFile(join(layout, "more"), "x");
    const file = join(directory, "image.tar");
    await create({ file, cwd: layout }, ["."]);
    unpacking("bash");
    await build({ path: file });
    expect(existsSync(join(directory, "scratch/layout/index.json"))).toBe(true);
    expect(existsSync(join(directory, "scratch/layout/more"))).toBe(false);
  });

  it("passes on the message of umoci", async () => {
    await writeImage(GOOD);
    runner = createScriptedCommandRunner(({ args }) =>
      args[0] === "raw"
        ? { kind: "exits", exitCode: 1, stderr: "   • unpacking\n   ⨯ create rootfs: no space   \n" }
        : { kind: "exits" },
    );
    await expect(build()).rejects.toMatchObject({
      message: "the image cannot be used: umoci failed (exit code 1): create rootfs: no space",
    });
  });
});

describe("chooseEntry", () => {
  const descriptor = (ref: string | null, platform: string | null): Descriptor => {
    return { mediaType: MANIFEST, sha256: "0".repeat(64), sizeBytes: 1, ref, platform };
  };
  const here = { ref: null, platform: "linux/amd64" };

  it("takes the only entry, and the only one of this platform", () => {
    const [amd, arm] = [descriptor(null, "linux/amd64"), descriptor(null, "linux/arm64")];
    expect(chooseEntry([descriptor(null, null)], here)).toEqual(descriptor(null, null));
    expect(chooseEntry([arm, amd, descriptor(null, "unknown/unknown")], here)).toBe(amd);
    expect(() => chooseEntry([arm], here)).toThrow("nothing for linux/amd64, only linux/arm64");
  });

  it("refuses to choose between names", () => {
    const two = [descriptor("a", null), descriptor("b", null)];
    expect(() => chooseEntry(two, here)).toThrow('name one; it has "a", "b"');
    expect(chooseEntry(two, { ...here, ref: "b" })).toBe(two[1]);
  });
});

describe("parseManifest", () => {
  const blob = { mediaType: CONFIG, digest: `sha256:${"0".repeat(64)}`, size: 1 };
  it.each([
    ["layers that cannot be unpacked", { config: blob, layers: [{ ...blob, mediaType: `${LAYER}+zstd` }] }],
    ["what is no image", { config: { ...blob, mediaType: "text/plain" }, layers: [] }],
    ["digests that lead elsewhere", { config: { ...blob, digest: "sha256:../../x" }, layers: [] }],
    ["sizes that are none", { config: { ...blob, size: -1 }, layers: [] }],
    ["no layers", { config: blob }],
  ])("refuses %s", (_what, manifest) => {
    expect(() => parseManifest(JSON.stringify(manifest))).toThrow("the image cannot be used");
  });
});
