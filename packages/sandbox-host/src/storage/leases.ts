/** What may not go for now, by its name; a name may be leased several times. */
export class Leases {
  readonly #counts = new Map<string, number>();

  /** Until the lease is disposed of, once or more often. */
  take(name: string): Disposable {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    let state: "held" | "over" = "held";
    return {
      [Symbol.dispose]: () => {
        if (state === "over") return;
        state = "over";
        const left = (this.#counts.get(name) ?? 0) - 1;
        if (left > 0) this.#counts.set(name, left);
        else this.#counts.delete(name);
      },
    };
  }

  has(name: string): boolean {
    return this.#counts.has(name);
  }

  /** The names that are leased and begin so. */
  startingWith(prefix: string): readonly string[] {
    return [...this.#counts.keys()].filter((name) => name.startsWith(prefix));
  }
}
