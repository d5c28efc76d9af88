import { hkdfSync, randomBytes } from "node:crypto";
import { mkdirSync, renameSync, statSync } from "node:fs";
import path from "node:path";
import { createOnce, type KeyFileOptions, readIfThere, SandboxError, writeDraft } from "@turnbox/core";

const KEY_BYTES = 32;
const ID_INFO = "turnbox archive wrapping key id 1";
const ID_BYTES = 16;
const MAX_KEYS = 1000;
const MODE = 0o600;

/** A key that wraps data keys. */
export interface WrappingKey {
  /** `file:` and the fingerprint of the key. */
  readonly id: string;
  readonly bytes: Buffer;
}

/**
 * The keys of a key file, the oldest first; the file is made with one key if it is not there. Each line is 32 bytes in base64url.
 * Reads and writes synchronously: it is for the start of a service.
 */
export function loadOrCreateWrappingKeys(file: string, options: KeyFileOptions = {}): readonly WrappingKey[] {
  if (readIfThere(file) === undefined) {
    mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
    createOnce(file, { content: newLine(), mode: MODE });
  }
  const mode = statSync(file).mode & 0o777;
  if ((mode & 0o077) !== 0) options.onLooseMode?.(file, mode);
  return parseKeys(file);
}

/** Adds a key to the file, which wraps from the next start on. The others stay, for what they have wrapped. */
export function addWrappingKey(file: string): void {
  if (parseKeys(file).length === MAX_KEYS) throw tooMany(file);
  const content = `${readIfThere(file) ?? ""}${newLine()}`;
  renameSync(writeDraft(file, { content, mode: MODE }), file);
}

function parseKeys(file: string): readonly WrappingKey[] {
  const lines = (readIfThere(file) ?? "").split("\n").filter((line) => line !== "");
  if (lines.length === 0) throw new SandboxError("CONFIG_INVALID", `${file} holds no key`);
  if (lines.length > MAX_KEYS) throw tooMany(file);
  return lines.map((line, index) => parseLine(file, line, index));
}

function parseLine(file: string, line: string, index: number): WrappingKey {
  const bytes = Buffer.from(line, "base64url");
  if (bytes.byteLength !== KEY_BYTES || bytes.toString("base64url") !== line)
    throw new SandboxError("CONFIG_INVALID", `${file}: line ${index + 1} is not a key of 32 bytes in base64url`);
  return { id: fingerprint(bytes), bytes };
}

function fingerprint(bytes: Buffer): string {
  const derived = Buffer.from(hkdfSync("sha256", bytes, Buffer.alloc(0), ID_INFO, ID_BYTES));
  return `file:${derived.toString("hex")}`;
}

const newLine = (): string => `${randomBytes(KEY_BYTES).toString("base64url")}\n`;

const tooMany = (file: string): SandboxError =>
  new SandboxError("CONFIG_INVALID", `${file} holds more than ${MAX_KEYS} keys`);
