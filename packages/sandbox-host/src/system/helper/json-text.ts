/** Longer than any reply of a sentry. */
export const MAX_JSON_TEXT_BYTES = 8 * 1024 * 1024;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING: ReadonlySet<number | undefined> = new Set(Buffer.from("{["));
const CLOSING: ReadonlySet<number | undefined> = new Set(Buffer.from("}]"));
const OBJECT = 0x7b;
const SPACES: ReadonlySet<number | undefined> = new Set(Buffer.from(" \t\r\n"));

/**
 * The text of one JSON object that comes in pieces over a connection which stays open. Each byte is read once, so that a peer
 * that sends many small pieces, or no end, costs no more than its bytes.
 */
export class JsonText {
  readonly #parts: Buffer[] = [];
  #bytes = 0;
  #depth = 0;
  #state: "before" | "inside" | "string" | "escape" | "after" = "before";

  /** Takes the next bytes, and returns whether the object has ended. Throws if they begin no object, or are too many. */
  add(piece: Buffer): boolean {
    this.#bytes += piece.length;
    if (this.#bytes > MAX_JSON_TEXT_BYTES) throw new Error("the reply is too long");
    for (let at = 0; at < piece.length; at += 1) {
      this.#step(piece[at]);
      if (this.#state === "after") {
        this.#parts.push(piece.subarray(0, at + 1));
        return true;
      }
    }
    this.#parts.push(piece);
    return false;
  }

  /** What has come, up to the end of the object. */
  text(): string {
    return Buffer.concat(this.#parts).toString("utf8");
  }

  #step(byte: number | undefined): void {
    if (this.#state === "escape") this.#state = "string";
    else if (this.#state === "string") this.#stepInString(byte);
    else if (this.#state === "inside") this.#stepInside(byte);
    else if (byte === OBJECT) this.#enter(1, "inside");
    else if (!SPACES.has(byte)) throw new Error("the reply is no object");
  }

  #stepInString(byte: number | undefined): void {
    if (byte === BACKSLASH) this.#state = "escape";
    else if (byte === QUOTE) this.#state = "inside";
  }

  #stepInside(byte: number | undefined): void {
    if (byte === QUOTE) this.#state = "string";
    else if (OPENING.has(byte)) this.#enter(1, "inside");
    else if (CLOSING.has(byte)) this.#enter(-1, this.#depth === 1 ? "after" : "inside");
  }

  #enter(deeper: number, state: "inside" | "after"): void {
    this.#depth += deeper;
    this.#state = state;
  }
}
