import type { DescMethod } from "@bufbuild/protobuf";
import { createRandom, SEED, shuffled } from "../random.ts";
import { type Answer, isRefusedForGood, readAnswer } from "./answer.ts";
import { describeInput, type Input, makeInput } from "./input.ts";
import { shrink } from "./shrink.ts";
import { Tally } from "./tally.ts";
import { faultOf } from "./verdict.ts";
import { type Service, Wire } from "./wire.ts";
import type { World } from "./world.ts";

/** What holds the service's targets in place while inputs come. */
export interface Keeper {
  readonly world: World;
  /** Makes again what inputs have destroyed, and removes what they have made too much of. */
  mend(): Promise<void>;
  /** Sees an answer, and learns from it what exists. */
  see(input: Input, answer: Answer): void;
}

export interface FuzzOptions {
  readonly service: Service;
  readonly keeper: Keeper;
  readonly methods: readonly DescMethod[];
  readonly inputsPerMethod: number;
  readonly lanes: number;
}

export interface FuzzResult {
  readonly tally: Tally;
  /** Each with what is needed to see it again. */
  readonly faults: readonly string[];
  /** Calls of which the service said that they changed nothing, and that it will refuse again. */
  readonly refused: readonly Input[];
  readonly slowestMs: number;
}

const MEND_EVERY = 60;
/** How often a long run prints how far it is. */
const PROGRESS_MS = 60_000;
const MOST_FAULTS = 20;
const MOST_REFUSED = 4000;

/** Sends all inputs of all methods, mixed, several at once. */
export async function fuzz(options: FuzzOptions): Promise<FuzzResult> {
  const { keeper, methods, inputsPerMethod } = options;
  const indices = Array.from({ length: inputsPerMethod }, (_, index) => index);
  const plan = shuffled(
    createRandom(SEED),
    indices.flatMap((index) => methods.map((method) => ({ method, index }))),
  );
  const tally = new Tally();
  const faults: string[] = [];
  const refused: Input[] = [];
  let slowestMs = 0;
  let at = 0;
  let progressMs = performance.now();
  const progress = (): void => {
    if (performance.now() - progressMs < PROGRESS_MS) return;
    progressMs = performance.now();
    process.stdout.write(
      `${at} of ${plan.length} inputs, ${faults.length} faults, slowest ${slowestMs.toFixed(0)} ms\n`,
    );
  };
  const lane = async (): Promise<void> => {
    using wire = new Wire(options.service);
    for (let next = plan[at++]; next !== undefined && faults.length < MOST_FAULTS; next = plan[at++]) {
      progress();
      if (at % MEND_EVERY === 0) await keeper.mend();
      const input = makeInput(next.method, next.index, { seed: SEED, world: keeper.world });
      const begunMs = performance.now();
      const answer = readAnswer(input, await wire.send(input));
      const ms = performance.now() - begunMs;
      slowestMs = Math.max(slowestMs, ms);
      tally.count(input, answer, ms);
      keeper.see(input, answer);
      const fault = faultOf(answer);
      if (fault !== undefined) faults.push(`${fault}\n${describeInput(input)}\n${await shrink(input, wire)}`);
      if (isRefusedForGood(answer) && refused.length < MOST_REFUSED) refused.push(input);
    }
  };
  await Promise.all(Array.from({ length: options.lanes }, lane));
  return { tally, faults, refused, slowestMs };
}
