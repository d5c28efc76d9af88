/** What happened, in order: the last lines for people, and a digest of all of them. */
export class Trace {
  readonly #nowMs: () => number;
  readonly #kept: string[] = [];
  readonly #keep: number;
  #digest = 0x811c9dc5;
  #lines = 0;

  constructor(options: { readonly nowMs: () => number; readonly keep: number }) {
    this.#nowMs = options.nowMs;
    this.#keep = options.keep;
  }

  add(line: string): void {
    const dated = `${(this.#nowMs() / 1000).toFixed(3).padStart(10)}  ${line}`;
    this.#lines += 1;
    for (let at = 0; at < dated.length; at += 1) {
      this.#digest = Math.imul(this.#digest ^ dated.charCodeAt(at), 0x01000193);
    }
    this.#kept.push(dated);
    if (this.#kept.length >= 2 * this.#keep) this.#kept.splice(0, this.#keep);
  }

  /** The same for the same lines. */
  digest(): string {
    return `${(this.#digest >>> 0).toString(16).padStart(8, "0")}-${String(this.#lines)}`;
  }

  last(): readonly string[] {
    return this.#kept.slice(-this.#keep);
  }
}
