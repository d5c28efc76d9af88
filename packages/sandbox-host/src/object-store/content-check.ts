import { createHash, type Hash } from "node:crypto";

/** Takes in the bytes of an object as they come and says at the end whether they are those that were put. */
export interface ContentCheck {
  update(chunk: Uint8Array): void;
  isGood(): boolean;
}

export const sha256Of = (content: Uint8Array): string => createHash("sha256").update(content).digest("hex");

/** Compares with the SHA-256 of the whole content, in hexadecimal digits. */
export class WholeCheck implements ContentCheck {
  readonly #hash = createHash("sha256");
  readonly #expected: string;

  constructor(expected: string) {
    this.#expected = expected;
  }

  update(chunk: Uint8Array): void {
    this.#hash.update(chunk);
  }

  isGood(): boolean {
    return this.#hash.digest("hex") === this.#expected;
  }
}

/**
 * Compares with the checksum that S3 gives an object that was put in parts: the SHA-256 of the SHA-256s of the parts, in base 64,
 * and the number of parts behind a hyphen.
 */
export class PartsCheck implements ContentCheck {
  readonly #expected: string;
  readonly #partBytes: number;
  readonly #digests = createHash("sha256");
  #part: Hash = createHash("sha256");
  #filled = 0;
  #parts = 0;

  constructor(expected: string, partBytes: number) {
    this.#expected = expected;
    this.#partBytes = partBytes;
  }

  update(chunk: Uint8Array): void {
    for (let taken = 0; taken < chunk.byteLength; ) {
      if (this.#filled === this.#partBytes) this.#endPart();
      const some = chunk.subarray(taken, taken + this.#partBytes - this.#filled);
      this.#part.update(some);
      this.#filled += some.byteLength;
      taken += some.byteLength;
    }
  }

  isGood(): boolean {
    this.#endPart();
    return `${this.#digests.digest("base64")}-${this.#parts}` === this.#expected;
  }

  #endPart(): void {
    this.#digests.update(this.#part.digest());
    this.#part = createHash("sha256");
    this.#filled = 0;
    this.#parts += 1;
  }
}
