import { poll } from "../process.ts";
import { readAnswer } from "./answer.ts";
import { describeInput, type Input } from "./input.ts";
import { type Service, Wire } from "./wire.ts";

/** What a service holds, as lines; the same lines while nothing changes. */
export type State = () => Promise<readonly string[]> | readonly string[];

const SETTLE_MS = 60_000;
const LOOK_EVERY_MS = 500;

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
    const stillRefused = await refusedAgain(wire, left);
    const after = await settled(state);
    if (stillRefused.length === left.length) {
      const changes = difference(before, after);
      const culprits = changes.length === 0 ? [] : await culpritsAmong(wire, left, state);
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

async function refusedAgain(wire: Wire, inputs: readonly Input[]): Promise<readonly Input[]> {
  const refused: Input[] = [];
  for (const input of inputs) {
    const answer = readAnswer(input, await wire.send(input));
    if (answer.kind === "refused" && answer.admitted === "no") refused.push(input);
  }
  return refused;
}

/** Each call alone; for the message of a failing test, so it stops at the first. */
async function culpritsAmong(wire: Wire, inputs: readonly Input[], state: State): Promise<readonly string[]> {
  for (const input of inputs) {
    const before = await state();
    await wire.send(input);
    if (difference(before, await state()).length > 0) return [describeInput(input)];
  }
  return ["no call does it alone"];
}

function difference(before: readonly string[], after: readonly string[]): readonly string[] {
  const [had, has] = [new Set(before), new Set(after)];
  return [
    ...before.filter((line) => !has.has(line)).map((line) => `- ${line}`),
    ...after.filter((line) => !had.has(line)).map((line) => `+ ${line}`),
  ];
}
