import type { Argument, Command, Option } from "commander";
import { createDeadline } from "@turnbox/core";
import { findCommand, visibleCommands } from "../help/find-command.ts";
import { TOPICS } from "../help/topic.ts";
import type { Invocation } from "../invocation.ts";
import { printable } from "../printable.ts";
import { type Candidate, lookUp } from "./look-up.ts";
import { parseWords, type TypedLine } from "./parse-words.ts";

/** A key that is pressed waits no longer than this. */
const DEADLINE_MS = 300;

/** Answers for the last of the words, in time or not at all: if anything fails, there are no candidates. */
export async function complete(
  program: Command,
  words: readonly string[],
  invocation: Invocation,
): Promise<readonly Candidate[]> {
  const line = parseWords(program, words);
  using deadline = createDeadline({
    clock: invocation.surroundings.clock,
    ms: DEADLINE_MS,
    signal: invocation.signal,
  });
  const candidates = await candidatesFor(program, line, { ...invocation, signal: deadline.signal }).catch(() => []);
  const seen = new Set<string>();
  return candidates
    .filter(({ value }) => value.startsWith(line.current) && value !== "" && printable(value) === value)
    .filter(({ value }) => !seen.has(value) && seen.add(value))
    .map(({ value, note }) => ({ value, note: printable(note) }));
}

async function candidatesFor(program: Command, line: TypedLine, invocation: Invocation): Promise<readonly Candidate[]> {
  const { cursor, command } = line;
  switch (cursor.is) {
    case "foreign":
      return [];
    case "option":
      return optionsOf(command, line.given);
    case "value":
      return cursor.option.argChoices?.map(plain) ?? (await lookUp(kindOfOption(cursor.option), line, invocation));
    case "operand":
      if (command.name() === "help" && command.parent === program) return helpWords(program, line.operands);
      return [
        ...(line.operands.length > 0 ? [] : visibleCommands(command).map(describeCommand)),
        ...(cursor.argument === undefined ? [] : await argumentsFor(cursor.argument, line, invocation)),
      ];
  }
}

const argumentsFor = async (
  argument: Argument,
  line: TypedLine,
  invocation: Invocation,
): Promise<readonly Candidate[]> =>
  argument.argChoices?.map(plain) ?? (await lookUp(argument.name(), line, invocation));

const plain = (value: string): Candidate => ({ value, note: "" });

const describeCommand = (command: Command): Candidate => ({ value: command.name(), note: command.summary() });

function helpWords(program: Command, words: readonly string[]): readonly Candidate[] {
  const { command } = findCommand(program, words);
  return [...visibleCommands(command).map(describeCommand), ...(words.length === 0 ? TOPICS.map(plain) : [])];
}

/** Those that may be given once are not offered twice. */
function optionsOf(command: Command, given: ReadonlySet<Option>): readonly Candidate[] {
  const options = command.createHelp().visibleOptions(command);
  return options
    .filter((option) => !given.has(option) || option.parseArg !== undefined)
    .map((option) => ({ value: option.long ?? option.short ?? "", note: option.description }));
}

/** What an option's value is called in its help says what it is; templates and files are called otherwise. */
const kindOfOption = ({ long, flags }: Option): string | undefined =>
  long === "--template" ? "template" : /[<[]([\w-]+)[>\]]/.exec(flags)?.[1];
