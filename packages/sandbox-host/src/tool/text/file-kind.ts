/** How much of a file's beginning its kind is found by. */
export const SNIFF_BYTES = 8192;

export type FileKind =
  | { readonly kind: "text" }
  | { readonly kind: "image"; readonly mediaType: string }
  | { readonly kind: "binary"; readonly what: string };

const ascii = (text: string): Buffer => Buffer.from(text, "latin1");

/** What begins a file of a kind, and what follows it at a distance. */
interface Magic {
  readonly bytes: Buffer;
  readonly then?: { readonly at: number; readonly bytes: Buffer };
}

const IMAGES: readonly (readonly [Magic, mediaType: string])[] = [
  [{ bytes: ascii("\x89PNG\r\n\x1a\n") }, "image/png"],
  [{ bytes: ascii("\xff\xd8\xff") }, "image/jpeg"],
  [{ bytes: ascii("GIF87a") }, "image/gif"],
  [{ bytes: ascii("GIF89a") }, "image/gif"],
  [{ bytes: ascii("RIFF"), then: { at: 8, bytes: ascii("WEBP") } }, "image/webp"],
];

const BINARIES: readonly (readonly [Buffer, what: string])[] = [
  [ascii("\x7fELF"), "ELF program or library"],
  [ascii("%PDF-"), "PDF document"],
  [ascii("PK\x03\x04"), "ZIP archive"],
  [ascii("\x1f\x8b"), "gzip data"],
  [ascii("\xfd7zXZ\0"), "xz data"],
  [ascii("\x28\xb5\x2f\xfd"), "zstd data"],
  [ascii("SQLite format 3\0"), "SQLite database"],
  [ascii("\xff\xfe"), "UTF-16 text"],
  [ascii("\xfe\xff"), "UTF-16 text"],
];

/** Most files begin with none of these. */
const FIRST_BYTES: ReadonlySet<number | undefined> = new Set(
  [...IMAGES.map(([{ bytes }]) => bytes), ...BINARIES.map(([bytes]) => bytes)].map(([first]) => first),
);

/** What a file is, by its first bytes. Text is what has no NUL byte there. */
export function fileKindOf(start: Buffer): FileKind {
  return (FIRST_BYTES.has(start[0]) ? magicKindOf(start) : undefined) ?? plainKindOf(start);
}

function magicKindOf(start: Buffer): FileKind | undefined {
  const image = IMAGES.find(
    ([{ bytes, then }]) => has(start, bytes) && (then === undefined || has(start, then.bytes, then.at)),
  );
  if (image !== undefined) return { kind: "image", mediaType: image[1] };
  const binary = BINARIES.find(([magic]) => has(start, magic));
  return binary === undefined ? undefined : { kind: "binary", what: binary[1] };
}

function plainKindOf(start: Buffer): FileKind {
  return start.includes(0) ? { kind: "binary", what: "binary data" } : { kind: "text" };
}

/** Whether a search passes over the file. */
export function isBinary(start: Buffer): boolean {
  return start.subarray(0, SNIFF_BYTES).includes(0);
}

function has(start: Buffer, magic: Buffer, at = 0): boolean {
  return start.subarray(at, at + magic.length).equals(magic);
}
