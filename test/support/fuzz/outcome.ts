import { expect } from "@jest/globals";
import { SLACK } from "../random.ts";
import type { FuzzResult } from "./fuzz.ts";
import { nameOf } from "./methods.ts";
import type { DescMethod } from "@bufbuild/protobuf";
import { HANG_MS } from "./wire.ts";

/** Health has to answer this soon on a quiet machine while inputs come. */
const HEALTH_MS = 2000;

/** Every method got its inputs, each was answered as it may be, in time, and health went on. */
export function expectSound(
  { faults, tally, slowestMs }: FuzzResult,
  want: { readonly methods: readonly DescMethod[]; readonly inputs: number; readonly healthMs: number },
): void {
  expect(faults).toEqual([]);
  expect(want.methods.map((method) => [nameOf(method), tally.of(nameOf(method))])).toEqual(
    want.methods.map((method) => [nameOf(method), want.inputs]),
  );
  expect(slowestMs).toBeLessThan(HANG_MS);
  expect(want.healthMs).toBeLessThan(HEALTH_MS * SLACK);
}

/** Figures for people; with TURNBOX_FUZZ_TALLY=1 also what each method answered, and how often. */
export function report(title: string, figures: Readonly<Record<string, number>>, { tally }: FuzzResult): void {
  const numbers = Object.entries(figures).map(([name, value]) => `${name} ${value.toFixed(0)}`);
  process.stdout.write(`${title}: ${numbers.join(", ")}\n`);
  if (process.env["TURNBOX_FUZZ_TALLY"] === "1") process.stdout.write(`${tally.toString()}\n`);
}
