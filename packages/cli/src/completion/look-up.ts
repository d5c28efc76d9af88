import type { Turnbox } from "@turnbox/client";
import { sessionPart } from "@turnbox/client/internal";
import type { Invocation } from "../invocation.ts";
import type { TypedLine } from "./parse-words.ts";

/** What the word at the cursor could become. */
export interface Candidate {
  readonly value: string;
  /** What it is, in a few words; may be empty. */
  readonly note: string;
}

interface Question {
  readonly turnbox: Turnbox;
  readonly line: TypedLine;
  readonly signal: AbortSignal;
}

type Answer = (question: Question) => Promise<readonly Candidate[]>;

/** What finds candidates for an argument of this name. */
const ANSWERS: Readonly<Record<string, Answer>> = {
  id: sandboxes,
  source: copyEnds,
  destination: copyEnds,
  snapshot: snapshots,
  from: snapshots,
  to: snapshots,
  proc: processes,
  instance: instances,
  template: templates,
};

/** Asks the server, and the host of a sandbox, for what could stand here; nothing for any other kind. */
export async function lookUp(
  kind: string | undefined,
  line: TypedLine,
  invocation: Invocation,
): Promise<readonly Candidate[]> {
  const answer = kind !== undefined && Object.hasOwn(ANSWERS, kind) ? ANSWERS[kind] : undefined;
  if (answer === undefined) return [];
  using turnbox = invocation.turnbox(line.server);
  return await answer({ turnbox, line, signal: invocation.signal });
}

/** By name and by the short part of the id; by the whole id if one has been begun. */
async function sandboxes({ turnbox, line, signal }: Question): Promise<readonly Candidate[]> {
  const { sandboxes: all } = await turnbox.list({ signal });
  return all
    .filter(
      ({ id, name }) => ![name, id, sessionPart(id)].some((one) => one !== undefined && line.operands.includes(one)),
    )
    .flatMap(({ id, name = "" }) => {
      if (line.current.includes(":")) return [{ value: id, note: name }];
      const short = { value: sessionPart(id), note: name };
      return name === "" ? [short] : [{ value: name, note: sessionPart(id) }, short];
    });
}

/** One end of a copy: a sandbox and a colon. What is here is left to the shell. */
async function copyEnds(question: Question): Promise<readonly Candidate[]> {
  const { current } = question.line;
  if (/[:/.]/.test(current)) return [];
  return (await sandboxes(question)).map(({ value, note }) => ({ value: `${value}:`, note }));
}

/** Turns by number, the newest first; names of named ones. */
async function snapshots({ turnbox, line, signal }: Question): Promise<readonly Candidate[]> {
  const [reference] = line.operands;
  if (reference === undefined) return [];
  const sandbox = await turnbox.handle(reference, { signal });
  const all = await sandbox.snapshots({ signal });
  return all.toReversed().flatMap(({ id, turnNumber, turnKey, kind, name }) => {
    if (turnNumber !== undefined) return [{ value: String(turnNumber), note: turnKey ?? id }];
    return kind === "named" && name !== undefined ? [{ value: name, note: id }] : [];
  });
}

async function processes({ turnbox, line, signal }: Question): Promise<readonly Candidate[]> {
  const [reference] = line.operands;
  if (reference === undefined) return [];
  const sandbox = await turnbox.handle(reference, { signal });
  const all = await sandbox.processes.list({ signal });
  return all.map(({ id, binary, args }) => ({ value: id, note: [binary, ...args].join(" ") }));
}

async function instances({ turnbox, signal }: Question): Promise<readonly Candidate[]> {
  const all = await turnbox.fleet.instances({ signal });
  return all.map(({ id, health }) => ({ value: id, note: health }));
}

async function templates({ turnbox, signal }: Question): Promise<readonly Candidate[]> {
  const names = (await turnbox.templates({ signal })).map(({ name }) => name);
  return [...new Set(names)].map((name) => ({ value: name, note: "" }));
}
