import { mkdir, realpath, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type CommandRunner, hasReason, SandboxError } from "@turnbox/core";
import type { ArchiveLimits, ArchiveCounter } from "./archive.ts";
import { invalidImage, REF_NAME } from "./oci-document.ts";
import { inspectLayer } from "./oci-layer.ts";
import { blobPath, type OciImage, openLayout, readImage } from "./oci-layout.ts";
import { packRoot } from "./pack-root.ts";
import { completeRoot } from "./root-layout.ts";

export interface OciBuild {
  /** An OCI image layout: a directory, or a tar archive of one. */
  readonly path: string;
  /** The image's name in the layout; null if the layout has only one image. */
  readonly ref: string | null;
  /** The path of the archive that is made. */
  readonly output: string;
  /** An empty directory for temporary files. The caller removes it. */
  readonly scratch: string;
}

interface Deps {
  readonly runner: CommandRunner;
  readonly limits: ArchiveLimits;
  readonly signal: AbortSignal;
}

const UNPACK_DEADLINE_MS = 20 * 60_000;
const VERSION_DEADLINE_MS = 10_000;
/** The name of the image in the layout that umoci reads. */
const STAGED_REF = "image";

/**
 * Makes the archive of an image's root filesystem with umoci, as root, so that owners are kept. Blobs that do not match
 * their digests, and everything that the import of an archive refuses, are refused before anything is unpacked. Only files
 * are taken over; commands, users, variables and directories in the image's config are not.
 */
export async function buildOci(build: OciBuild, deps: Deps): Promise<void> {
  const { limits, signal } = deps;
  await requireUmoci(deps);
  const bounds = { maxBytes: limits.maxBytes, signal };
  const layout = await openLayout({ path: build.path, scratch: join(build.scratch, "layout") }, bounds);
  const image = await readImage(layout, { ...bounds, ref: build.ref });
  const counter: ArchiveCounter = { bytes: 0, entries: 0 };
  for (const layer of image.parts.layers) await inspectLayer(blobPath(layout, layer), counter, { ...limits, signal });
  if (counter.entries === 0) throw invalidImage("it has no files");
  await stageImage(image, { from: await realpath(layout), to: join(build.scratch, "staged") });
  const root = join(build.scratch, "root");
  await unpack(build.scratch, deps);
  await completeRoot(root);
  await packRoot({ root, output: build.output }, deps);
}

async function requireUmoci({ runner, signal }: Deps): Promise<void> {
  try {
    await runner.run({ command: "umoci", args: ["--version"], deadlineMs: VERSION_DEADLINE_MS }, { signal });
  } catch (thrown) {
    if (!hasReason(thrown, "COMMAND_MISSING")) throw thrown;
    throw new SandboxError(
      "COMMAND_MISSING",
      "umoci is not installed; on Debian: apt-get install --no-install-recommends umoci",
      { cause: thrown, metadata: { command: "umoci" } },
    );
  }
}

/**
 * A layout of the one image, under a name that umoci's path:name notation can carry. The blobs are links: umoci checks
 * their digests once more while it reads them.
 */
async function stageImage(
  { manifest, parts }: OciImage,
  { from, to }: { readonly from: string; readonly to: string },
): Promise<void> {
  await mkdir(join(to, "blobs/sha256"), { recursive: true, mode: 0o700 });
  const blobs = new Map([manifest, parts.config, ...parts.layers].map((blob) => [blob.sha256, blob]));
  for (const blob of blobs.values()) await symlink(blobPath(from, blob), blobPath(to, blob));
  const entry = {
    mediaType: manifest.mediaType,
    digest: `sha256:${manifest.sha256}`,
    size: manifest.sizeBytes,
    annotations: { [REF_NAME]: STAGED_REF },
  };
  await writeFile(join(to, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  await writeFile(join(to, "index.json"), JSON.stringify({ schemaVersion: 2, manifests: [entry] }));
}

async function unpack(scratch: string, { runner, signal }: Deps): Promise<void> {
  const args = ["raw", "unpack", "--image", `staged:${STAGED_REF}`, "root"];
  const spec = { command: "umoci", args, cwd: scratch, deadlineMs: UNPACK_DEADLINE_MS, env: { LC_ALL: "C" } };
  const { exitCode, stdout, stderr } = await runner.run(spec, { signal });
  if (exitCode === 0) return;
  const last = `${stdout}\n${stderr}`.trim().split("\n").at(-1) ?? "";
  throw invalidImage(`umoci failed (exit code ${exitCode}): ${last.replace(/^[\s⨯•]+/, "").trimEnd()}`);
}
