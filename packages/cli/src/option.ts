import { type Command, Option } from "commander";
import { invalidArgument } from "@turnbox/core";
import type { ServerFlags } from "@turnbox/client/internal";

export interface OutputOptions {
  readonly json?: boolean;
}

/** The options of every verb that talks to a server. */
export interface ServerOptions extends ServerFlags, OutputOptions {}

export function withOutputOption(command: Command): Command {
  return command.option("--json", "print one JSON object, for errors too");
}

const SERVER_OPTIONS: readonly (readonly [flags: string, description: string])[] = [
  ["--url <url>", "the server's address (default: TURNBOX_URL, else the server of TURNBOX_HOME and TURNBOX_PORT)"],
  ["--token <token>", "the server's token (default: TURNBOX_TOKEN, else the one in TURNBOX_HOME)"],
  ["--token-file <path>", "a file that holds the token (default: TURNBOX_TOKEN_FILE)"],
];

export function withServerOptions(command: Command): Command {
  withOutputOption(command);
  for (const [flags, description] of SERVER_OPTIONS)
    command.addOption(new Option(flags, description).helpGroup("Which server:"));
  return command;
}

const EXAMPLE_COLUMNS = 80;

/** Examples under a verb's `--help`: what to type, and what it does. Side by side if all of them fit. */
export function withExamples(
  command: Command,
  examples: readonly (readonly [typed: string, effect: string])[],
): Command {
  const width = Math.max(...examples.map(([typed]) => typed.length));
  const side = examples.map(([typed, effect]) => `  $ ${typed.padEnd(width)}   # ${effect}`);
  const stacked = examples.map(([typed, effect]) => `  # ${effect}\n  $ ${typed}`);
  const lines = side.every((line) => line.length <= EXAMPLE_COLUMNS) ? side : stacked;
  return command.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}

/** For options that may be given several times. */
export function collect(value: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), value];
}

/** `KEY=VALUE` words as a record; the value may hold further equal signs, and be empty. */
export function parsePairs(words: readonly string[] | undefined, field: string): Record<string, string> {
  const pairs: [string, string][] = (words ?? []).map((word) => {
    const at = word.indexOf("=");
    if (at < 1) throw invalidArgument(field, `${JSON.stringify(word)} is not of the form KEY=VALUE`);
    return [word.slice(0, at), word.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}
