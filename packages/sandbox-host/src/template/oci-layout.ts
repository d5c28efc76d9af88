import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { type Call, SandboxError } from "@turnbox/core";
import { extract } from "tar";
import {
  chooseEntry,
  type Descriptor,
  invalidImage,
  type Manifest,
  MEDIA_TYPE,
  parseIndex,
  parseManifest,
} from "./oci-document.ts";

/** An image whose blobs match its manifest by size and digest. */
export interface OciImage {
  readonly manifest: Descriptor;
  readonly parts: Manifest;
}

interface Bounds extends Call {
  readonly maxBytes: number;
}

const MAX_DOCUMENT_BYTES = 4 * 1024 * 1024;
const MAX_NESTED_INDEXES = 4;
/** OCI's names of architectures that differ from Node's. */
const ARCHITECTURES: Readonly<Partial<Record<string, string>>> = { x64: "amd64", ia32: "386" };

export const blobPath = (layout: string, { sha256 }: Descriptor): string => join(layout, "blobs/sha256", sha256);

/**
 * The directory of an image layout: `path` itself, or `scratch` if `path` is a tar archive (plain or gzip) of one. Then its
 * documents and blobs are unpacked to it; links and everything else in the archive are left out.
 */
export async function openLayout(
  { path, scratch }: { readonly path: string; readonly scratch: string },
  { maxBytes, signal }: Bounds,
): Promise<string> {
  const stats = await stat(path).catch(() => undefined);
  if (stats?.isDirectory() === true) return path;
  if (stats?.isFile() !== true) {
    throw new SandboxError("FILE_NOT_FOUND", `there is no image layout ${path}`, { metadata: { path } });
  }
  await mkdir(scratch, { mode: 0o700 });
  let bytes = 0;
  const filter = (name: string, entry: object): boolean => {
    const { type, size } = entry as { readonly type?: string; readonly size: number };
    if (signal.aborted || !/^(\.\/)*(index\.json|oci-layout|blobs\/sha256\/[0-9a-f]{64})$/.test(name)) return false;
    if (type !== "File" && type !== "OldFile") return false;
    bytes += size;
    return bytes <= maxBytes;
  };
  try {
    await extract({ file: path, cwd: scratch, strict: true, preserveOwner: false, filter });
  } catch (cause) {
    throw invalidImage(cause instanceof Error ? cause.message : "the archive cannot be read", cause);
  }
  signal.throwIfAborted();
  if (bytes > maxBytes) throw invalidImage(`it has more than ${maxBytes} bytes`);
  return scratch;
}

/** Finds the image of this name and platform, and checks every blob of it. */
export async function readImage(layout: string, options: Bounds & { readonly ref: string | null }): Promise<OciImage> {
  const version = await readDocument(join(layout, "oci-layout")).catch(() => undefined);
  if (version === undefined) throw invalidImage("it is no OCI image layout: there is no file oci-layout");
  const platform = `linux/${ARCHITECTURES[process.arch] ?? process.arch}`;
  let chosen = chooseEntry(parseIndex(await readDocument(join(layout, "index.json"))), { ref: options.ref, platform });
  for (let depth = 0; chosen.mediaType === MEDIA_TYPE.index; depth += 1) {
    if (depth === MAX_NESTED_INDEXES) throw invalidImage("its indexes are nested too deeply");
    chosen = chooseEntry(parseIndex(await readBlobDocument(layout, chosen, options)), { ref: null, platform });
  }
  if (chosen.mediaType !== MEDIA_TYPE.manifest) throw invalidImage(`its manifest is ${chosen.mediaType}`);
  const parts = parseManifest(await readBlobDocument(layout, chosen, options));
  const blobs = [parts.config, ...parts.layers];
  if (blobs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) > options.maxBytes) {
    throw invalidImage(`it has more than ${options.maxBytes} bytes`);
  }
  for (const blob of blobs) await verifyBlob(layout, blob, options);
  return { manifest: chosen, parts };
}

async function readBlobDocument(layout: string, blob: Descriptor, { signal }: Bounds): Promise<string> {
  await verifyBlob(layout, blob, { signal });
  return await readDocument(blobPath(layout, blob));
}

async function readDocument(path: string): Promise<string> {
  const stats = await stat(path).catch(() => undefined);
  if (stats?.isFile() !== true) throw invalidImage("a file of the layout is missing");
  if (stats.size > MAX_DOCUMENT_BYTES) throw invalidImage(`a document has more than ${MAX_DOCUMENT_BYTES} bytes`);
  return await readFile(path, "utf8");
}

async function verifyBlob(layout: string, blob: Descriptor, { signal }: Call): Promise<void> {
  const path = blobPath(layout, blob);
  const stats = await stat(path).catch(() => undefined);
  const name = `blob sha256:${blob.sha256}`;
  if (stats?.isFile() !== true) throw invalidImage(`${name} is missing`);
  if (stats.size !== blob.sizeBytes) throw invalidImage(`${name} has ${stats.size} bytes instead of ${blob.sizeBytes}`);
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash, { signal });
  if (hash.digest("hex") !== blob.sha256) throw invalidImage(`${name} does not match its digest`);
}
