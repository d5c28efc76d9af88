import type { Command } from "commander";
import type { Environment } from "@turnbox/client/internal";
import { createStyle } from "../style.ts";
import { columnsOf, type OutputStream } from "../surroundings.ts";

/** Longer lines are hard to read, however wide the terminal is. */
const MOST_COLUMNS = 100;

/** How wide help may be. */
export const helpWidth = (stream: Pick<OutputStream, "columns">): number => Math.min(columnsOf(stream), MOST_COLUMNS);

/** Lets the help of a program and all its verbs look like the rest of the output. */
export function withHelpLook(
  program: Command,
  { stdout, environment }: { readonly stdout: OutputStream; readonly environment: Pick<Environment, "color"> },
): Command {
  const style = createStyle(stdout, environment);
  return program
    .configureHelp({
      styleTitle: style.bold,
      // With their arguments they would leave no room for what they do; their own help has them.
      subcommandTerm: (command) => command.name(),
    })
    .configureOutput({
      writeOut: (text) => stdout.write(text, () => undefined),
      // Usage errors are reported by the parser, in the wanted format.
      writeErr: () => undefined,
      getOutHelpWidth: () => helpWidth(stdout),
      getErrHelpWidth: () => helpWidth(stdout),
      // Whether there are any has been decided above.
      getOutHasColors: () => true,
      getErrHasColors: () => true,
    });
}
