import { SandboxError } from "@turnbox/core";

/** The description of a blob in an OCI document. */
export interface Descriptor {
  readonly mediaType: string;
  /** Lower-case hex; no other algorithm is in use. */
  readonly sha256: string;
  readonly sizeBytes: number;
  /** Its name in an index; null if it has none. */
  readonly ref: string | null;
  /** `os/architecture`; null if it is not given. */
  readonly platform: string | null;
}

export interface Manifest {
  readonly config: Descriptor;
  /** The lowest first. */
  readonly layers: readonly Descriptor[];
}

export const MEDIA_TYPE = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
} as const;
const LAYER_TYPES: ReadonlySet<string> = new Set([
  "application/vnd.oci.image.layer.v1.tar",
  "application/vnd.oci.image.layer.v1.tar+gzip",
]);
/** More layers than any builder makes. */
const MAX_LAYERS = 1000;
export const REF_NAME = "org.opencontainers.image.ref.name";

/** The manifests that an index lists. Throws `TEMPLATE_INVALID` like everything here. */
export function parseIndex(text: string): readonly Descriptor[] {
  const { manifests } = parseObject(text, "an index");
  if (!Array.isArray(manifests)) throw invalidImage("an index lists no manifests");
  return manifests.map((one) => toDescriptor(one));
}

/** The parts of one image, with layers of a kind that can be unpacked. */
export function parseManifest(text: string): Manifest {
  const { config: rawConfig, layers: rawLayers } = parseObject(text, "the manifest");
  if (!Array.isArray(rawLayers) || rawLayers.length > MAX_LAYERS) {
    throw invalidImage(`the manifest has no list of at most ${MAX_LAYERS} layers`);
  }
  const config = toDescriptor(rawConfig);
  if (config.mediaType !== MEDIA_TYPE.config) throw invalidImage(`it is no system image but ${config.mediaType}`);
  const layers = rawLayers.map((one) => toDescriptor(one));
  const foreign = layers.find(({ mediaType }) => !LAYER_TYPES.has(mediaType));
  if (foreign !== undefined) {
    throw invalidImage(`a layer is ${foreign.mediaType}, only tar archives, plain or gzip, can be unpacked`);
  }
  return { config, layers };
}

/**
 * The one entry of an index with the given name, if there is one, and for this platform, if the entries have platforms. If more
 * than one entry is left, the index is refused, and the refusal lists their names.
 */
export function chooseEntry(
  entries: readonly Descriptor[],
  { ref, platform }: { readonly ref: string | null; readonly platform: string },
): Descriptor {
  const named = ref === null ? entries : entries.filter((entry) => entry.ref === ref);
  if (named.length === 0 && ref !== null)
    throw invalidImage(`nothing in it is called ${quote(ref)}; ${listRefs(entries)}`);
  const fitting = named.filter((entry) => entry.platform === null || entry.platform === platform);
  const [only, ...others] = fitting;
  if (only === undefined) {
    const platforms = named.map((entry) => entry.platform).filter((one) => one !== null);
    throw invalidImage(
      `it has nothing for ${platform}${platforms.length === 0 ? "" : `, only ${platforms.join(", ")}`}`,
    );
  }
  if (others.length > 0)
    throw invalidImage(`it has ${fitting.length} images to choose from: name one; ${listRefs(entries)}`);
  return only;
}

export function invalidImage(why: string, cause?: unknown): SandboxError {
  return new SandboxError("TEMPLATE_INVALID", `the image cannot be used: ${why}`, { metadata: { rule: why }, cause });
}

const MAX_LISTED = 20;

function listRefs(entries: readonly Descriptor[]): string {
  const refs = [...new Set(entries.map(({ ref }) => ref).filter((ref) => ref !== null))];
  return refs.length === 0 ? "its images have no names" : `it has ${refs.slice(0, MAX_LISTED).map(quote).join(", ")}`;
}

const quote = (text: string): string => JSON.stringify(text);

function toDescriptor(raw: unknown): Descriptor {
  const { mediaType, digest, size, annotations, platform } = asRecord(raw);
  const sha256 = typeof digest === "string" ? /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1] : undefined;
  if (sha256 === undefined) throw invalidImage("a blob is not named by a sha256 digest");
  if (typeof mediaType !== "string") throw invalidImage("a blob has no media type");
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0) throw invalidImage("a blob has no size");
  const ref = asRecord(annotations)[REF_NAME];
  const { os, architecture } = asRecord(platform);
  return {
    ...{ mediaType, sha256, sizeBytes: size },
    ref: typeof ref === "string" ? ref : null,
    platform: typeof os === "string" && typeof architecture === "string" ? `${os}/${architecture}` : null,
  };
}

function parseObject(text: string, what: string): Readonly<Record<string, unknown>> {
  try {
    return asRecord(JSON.parse(text));
  } catch (cause) {
    throw invalidImage(`${what} is not JSON`, cause);
  }
}

/** An object's fields; anything else has none. */
function asRecord(raw: unknown): Readonly<Record<string, unknown>> {
  return typeof raw === "object" && raw !== null ? (raw as Readonly<Record<string, unknown>>) : {};
}
