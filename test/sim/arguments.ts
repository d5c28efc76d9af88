import { parseArgs } from "node:util";

export interface SimArguments {
  /** The seeds to run, in order. */
  readonly first: number;
  readonly count: number;
  readonly workers: number;
  /** One seed with everything that happens in it. */
  readonly isReplay: boolean;
}

/** `--seeds N [--start K]`, or `--seed S`. Throws on anything else. */
export function parseSimArguments(args: readonly string[], defaults: { readonly workers: number }): SimArguments {
  const { values } = parseArgs({
    args: [...args],
    options: {
      seeds: { type: "string" },
      seed: { type: "string" },
      start: { type: "string" },
      workers: { type: "string" },
    },
  });
  const isReplay = values.seed !== undefined;
  return {
    first: whole(values.seed ?? values.start ?? "0"),
    count: isReplay ? 1 : whole(values.seeds ?? "200"),
    workers: isReplay ? 1 : whole(values.workers ?? String(defaults.workers)),
    isReplay,
  };
}

function whole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${text} is not a whole number`);
  return Number(text);
}
