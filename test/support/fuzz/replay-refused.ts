import { poll } from "../process.ts";
import { readAnswer } from "./answer.ts";
import { describeInput, type Input } from "./input.ts";
import { type Service, Wire } from "./wire.ts";

/** What a service holds, as lines; the same lines while nothing changes. */
export type State = () => Promise<readonly string[]> | readonly string[];

const SETTLE_MS = 60_000;
const LOOK_EVERY_MS = 500;
const LANES = 8;

export interface Replayed {
  /** How many calls were refused a second time, with nothing else under way. */
  readonly refused: number;
  /** What changed over them, and which of them did it; empty if nothing did. */
  readonly changes: readonly string[];
}

/**
 * Sends calls again of which the service said that they changed nothing, while nothing else is under way, and compares what it holds
 * before and after. `rest` brings the service to where nothing changes by itself. Calls that are let through this time are left out, and the rest is sent once more.
 */
export async function replayRefused(
  inputs: readonly Input[],
  { service, state, rest }: { readonly service: Service; readonly state: State; readonly rest: () => Promise<void> },
): Promise<Replayed> {
  using wire = new Wire(service);
  let left: readonly Input[] = inputs.filter(({ ending, form }) => ending === "end" && form.protocol !== "get");
  for (;;) {
    await rest();
    const before = await settled(state);
    const stillRefused = await withoutAdmitted(wire, left);
    const after = await settled(state);
    if (stillRefused.length === left.length) {
      const changes = difference(before, after);
      const culprits = changes.length === 0 ? [] : [await culpritAmong(wire, left, state)];
      return { refused: left.length, changes: [...changes, ...culprits] };
    }
    left = stillRefused;
  }
}

/** The state when it has not changed between two looks: background work of earlier calls has ended. */
async function settled(state: State): Promise<readonly string[]> {
  let last = await state();
  const look = async (): Promise<readonly string[] | undefined> => {
    const now = await state();
    const same = difference(last, now).length === 0;
    last = now;
    return same ? now : undefined;
  };
  return await poll("the service to be at rest", look, SETTLE_MS, LOOK_EVERY_MS);
}

/**
 * All but those that are let through this time. Several are under way at once: none of them changes what another one meets. An answer
 * that is lost with its connection says nothing, and counts as before.
 */
async function withoutAdmitted(wire: Wire, inputs: readonly Input[]): Promise<readonly Input[]> {
  const admitted = new Set<Input>();
  const queue = [...inputs];
  const lane = async (): Promise<void> => {
    for (let input = queue.pop(); input !== undefined; input = queue.pop()) {
      const answer = readAnswer(input, await wire.send({ ...input, reading: "all" }));
      if (answer.kind === "done" || (answer.kind === "refused" && answer.admitted !== "no")) admitted.add(input);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return inputs.filter((input) => !admitted.has(input));
}

/** One call that changes the state, found by sending halves; for the message of a failing test. */
async function culpritAmong(wire: Wire, inputs: readonly Input[], state: State): Promise<string> {
  let suspects = inputs;
  while (suspects.length > 1) {
    const half = suspects.slice(0, Math.ceil(suspects.length / 2));
    const before = await settled(state);
    await withoutAdmitted(wire, half);
    const isAmong = difference(before, await settled(state)).length > 0;
    suspects = isAmong ? half : suspects.slice(half.length);
  }
  return suspects.map(describeInput).join();
}

function difference(before: readonly string[], after: readonly string[]): readonly string[] {
  const [had, has] = [new Set(before), new Set(after)];
  return [
    ...before.filter((line) => !has.has(line)).map((line) => `- ${line}`),
    ...after.filter((line) => !had.has(line)).map((line) => `+ ${line}`),
  ];
}
