/** How much of a file's beginning tells what it is. */
export const SNIFF_BYTES = 8192;

export type FileKind =
  | { readonly kind: "text" }
  | { readonly kind: "image"; readonly mediaType: string }
  | { readonly kind: "binary"; readonly what: string };

const ascii = (text: string): Buffer => Buffer.from(text, "latin1");

const IMAGES: readonly { readonly mediaType: string; readonly is: (start: Buffer) => boolean }[] = [
  { mediaType: "image/png", is: (start) => begins(start, ascii("\x89PNG\r\n\x1a\n")) },
  { mediaType: "image/jpeg", is: (start) => begins(start, ascii("\xff\xd8\xff")) },
  { mediaType: "image/gif", is: (start) => begins(start, ascii("GIF87a")) || begins(start, ascii("GIF89a")) },
  { mediaType: "image/webp", is: (start) => begins(start, ascii("RIFF")) && begins(start.subarray(8), ascii("WEBP")) },
];

const BINARIES: readonly (readonly [Buffer, string])[] = [
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

/** What a file is, by its first bytes. Text is what has no NUL byte there. */
export function fileKindOf(start: Buffer): FileKind {
  const image = IMAGES.find(({ is }) => is(start));
  if (image !== undefined) return { kind: "image", mediaType: image.mediaType };
  const binary = BINARIES.find(([magic]) => begins(start, magic));
  if (binary !== undefined) return { kind: "binary", what: binary[1] };
  return start.includes(0) ? { kind: "binary", what: "binary data" } : { kind: "text" };
}

/** Whether a search passes over the file. */
export function isBinary(start: Buffer): boolean {
  return start.subarray(0, SNIFF_BYTES).includes(0);
}

function begins(start: Buffer, magic: Buffer): boolean {
  return start.length >= magic.length && start.subarray(0, magic.length).equals(magic);
}
