/** The version of everything that this room writes. It reads no other one. docs/ARCHIVE.md has it byte by byte. */
export const FORMAT = 1;

/** Compressed bytes of each part but the last one. */
export const PART_BYTES = 16 * 1024 * 1024;
/** Parts of one object: a terabyte of compressed bytes. */
export const MAX_PARTS = 65_536;

export const SALT_BYTES = 32;
export const TAG_BYTES = 16;
export const NONCE_BYTES = 12;

/** What keys are derived for from a data key. */
export const OBJECT_INFO = "turnbox archive object 1";
export const MANIFEST_INFO = "turnbox archive manifest 1";

/**
 * How long what nothing names is kept, and so how old a part may be when a manifest first names it. A writer has half of it for
 * one object.
 */
export const GRACE_MS = 24 * 3_600_000;
