import type { Command } from "commander";

export interface FoundCommand {
  readonly command: Command;
  /** The names that lead to it, without that of the program. */
  readonly path: readonly string[];
}

/** The command that the first words name, as far as they do. */
export function findCommand(program: Command, words: readonly string[]): FoundCommand {
  let command = program;
  const path: string[] = [];
  for (const word of words) {
    const next = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (next === undefined) break;
    command = next;
    path.push(word);
  }
  return { command, path };
}

/** Commands that `--help` lists, without the `help` that every command with others below it has. */
export const visibleCommands = (command: Command): readonly Command[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => command.commands.includes(one));

/** Every command that does something, hidden ones left out, with the names that lead to it. */
export function listLeaves(program: Command): readonly FoundCommand[] {
  const visit = (command: Command, path: readonly string[]): readonly FoundCommand[] => {
    const below = visibleCommands(command).flatMap((child) => visit(child, [...path, child.name()]));
    // One with subcommands may do something itself if it takes arguments.
    const isLeaf = below.length === 0 || command.registeredArguments.length > 0;
    return isLeaf && path.length > 0 ? [{ command, path }, ...below] : below;
  };
  return visit(program, []);
}
