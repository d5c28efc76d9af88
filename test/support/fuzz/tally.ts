import type { Answer } from "./answer.ts";
import { nameOf } from "./methods.ts";
import type { Input } from "./input.ts";
import { wordFor } from "./verdict.ts";

/** How often each method was answered with what. */
export class Tally {
  readonly #ms = new Map<string, number[]>();
  readonly #counts = new Map<string, Map<string, number>>();

  count({ method }: Input, answer: Answer, ms: number): void {
    const name = nameOf(method);
    const all = this.#ms.get(name) ?? [];
    this.#ms.set(name, all);
    all.push(ms);
    const counts = this.#counts.get(name) ?? new Map<string, number>();
    this.#counts.set(name, counts);
    counts.set(wordFor(answer), (counts.get(wordFor(answer)) ?? 0) + 1);
  }

  /** Inputs of a method that were answered. */
  of(name: string): number {
    return [...(this.#counts.get(name)?.values() ?? [])].reduce((sum, count) => sum + count, 0);
  }

  done(name: string): number {
    return this.#counts.get(name)?.get("done") ?? 0;
  }

  toString(): string {
    const lines = [...this.#counts].sort().map(([name, counts]) => {
      const words = [...counts].sort((a, b) => b[1] - a[1]).map(([word, count]) => `${word} ${count}`);
      const ms = this.#ms.get(name) ?? [];
      const mean = ms.reduce((sum, one) => sum + one, 0) / ms.length;
      return `${name} (mean ${mean.toFixed(0)} ms, most ${Math.max(...ms).toFixed(0)} ms): ${words.join(", ")}`;
    });
    return lines.join("\n");
  }
}
