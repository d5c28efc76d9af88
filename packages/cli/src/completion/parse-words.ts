import type { Argument, Command, Option } from "commander";
import type { ServerFlags } from "@turnbox/client/internal";

/** What is known of a command line that is still being typed. */
export interface TypedLine {
  readonly command: Command;
  /** What stands for arguments so far. */
  readonly operands: readonly string[];
  /** Options that stand there already. */
  readonly given: ReadonlySet<Option>;
  /** What the options say about the server, so that the same one is asked. */
  readonly server: ServerFlags;
  /** The word at the cursor, as far as it is typed. */
  readonly current: string;
  /** What the word at the cursor is. */
  readonly cursor:
    | { readonly is: "value"; readonly option: Option }
    | { readonly is: "option" }
    | { readonly is: "operand"; readonly argument: Argument | undefined }
    /** Of a command in a sandbox. */
    | { readonly is: "foreign" };
}

const SERVER_FLAGS: Readonly<Record<string, keyof ServerFlags>> = {
  "--url": "url",
  "--token": "token",
  "--token-file": "tokenFile",
};

/** Reads all words but the last as far as they make sense; nothing is ever refused. */
export function parseWords(program: Command, words: readonly string[]): TypedLine {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? "";
  let command = program;
  let pending: Option | undefined;
  let cursor: TypedLine["cursor"] | undefined;
  const operands: string[] = [];
  const given = new Set<Option>();
  const server: { -readonly [Key in keyof ServerFlags]: ServerFlags[Key] } = {};
  const take = (option: Option, value: string): void => {
    const flag = SERVER_FLAGS[option.long ?? ""];
    if (flag !== undefined) server[flag] = value;
  };
  for (const word of before) {
    if (pending !== undefined) {
      take(pending, word);
      pending = undefined;
    } else if (word === "--") {
      cursor = { is: "foreign" };
      break;
    } else if (word.startsWith("-")) {
      const { option, value } = parseOption(command, word);
      if (option === undefined) continue;
      given.add(option);
      if (value !== undefined) take(option, value);
      else if (option.required) pending = option;
    } else {
      const next = operands.length > 0 ? undefined : command.commands.find((one) => one.name() === word);
      if (next === undefined) operands.push(word);
      else command = next;
    }
  }
  cursor ??= cursorOf({ command, operands, pending, current });
  return { command, operands, given, server, current, cursor };
}

/** The value is there where it stands in the same word. */
function parseOption(command: Command, word: string): { readonly option?: Option; readonly value?: string } {
  const [flag = "", value] = word.split(/=(.*)/s);
  const option = command.options.find(({ long, short }) => long === flag || short === flag);
  return { ...(option === undefined ? {} : { option }), ...(value === undefined ? {} : { value }) };
}

interface Position {
  readonly command: Command;
  readonly operands: readonly string[];
  readonly pending: Option | undefined;
  readonly current: string;
}

function cursorOf({ command, operands, pending, current }: Position): TypedLine["cursor"] {
  if (pending !== undefined) return { is: "value", option: pending };
  if (current.startsWith("-")) return { is: "option" };
  const all = command.registeredArguments;
  const last = all.at(-1);
  return { is: "operand", argument: all[operands.length] ?? (last?.variadic === true ? last : undefined) };
}
