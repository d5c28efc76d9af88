/**
 * Shares a number of equal slots among keys. A key gets a further slot only while it holds fewer than are free: one key alone can
 * have half of them, two a third each, and a key that holds nothing gets a slot as long as there are fewer keys than slots. No
 * share is reserved for a key that asks for none.
 *
 *     const leave = shares.enter(session.row.token);
 *     if (leave === undefined) throw overloaded();
 *
 * The key is the session's token, or a key that several sessions have in common.
 */
export class Shares {
  readonly #size: number;
  readonly #heldBy = new Map<string, number>();
  #held = 0;

  constructor(size: number) {
    this.#size = size;
  }

  get held(): number {
    return this.#held;
  }

  heldBy(key: string): number {
    return this.#heldBy.get(key) ?? 0;
  }

  /** Whether the key may have one more. `extra` counts as held by it, and as taken. */
  hasRoom(key: string, extra: { readonly own: number; readonly all: number } = NOTHING): boolean {
    return this.heldBy(key) + extra.own < this.#size - this.#held - extra.all;
  }

  /** Takes a slot, whether or not the key has room. */
  take(key: string): void {
    this.#held += 1;
    this.#heldBy.set(key, this.heldBy(key) + 1);
  }

  leave(key: string): void {
    const left = this.heldBy(key) - 1;
    this.#held -= 1;
    if (left === 0) this.#heldBy.delete(key);
    else this.#heldBy.set(key, left);
  }

  /** Takes a slot if the key has room; returns the function that leaves it, which does nothing the second time. */
  enter(key: string): (() => void) | undefined {
    if (!this.hasRoom(key)) return undefined;
    this.take(key);
    let state: "taken" | "left" = "taken";
    return () => {
      if (state === "left") return;
      state = "left";
      this.leave(key);
    };
  }
}

const NOTHING = { own: 0, all: 0 };
