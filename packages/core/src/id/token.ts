import { randomBytes } from "node:crypto";

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz";

/**
 * A random token of lower-case letters and digits, 5 bits a character. Tokens name datasets, containers and cgroups, so
 * they are short, of one fixed length per use, and begin with a letter.
 */
export function randomToken(length: number): string {
  const bytes = randomBytes(length);
  const characters = Array.from(bytes, (byte) => ALPHABET[byte % ALPHABET.length] ?? "");
  const first = bytes[0] ?? 0;
  return [ALPHABET[10 + (first % 22)] ?? "", ...characters.slice(1)].join("");
}
