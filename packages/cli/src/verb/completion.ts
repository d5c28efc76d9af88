import { Argument, type Command } from "commander";
import { complete } from "../completion/complete.ts";
import { COMPLETION_SHELLS, completionScript, type Shell } from "../completion-script.ts";
import { visibleCommands } from "../help/find-command.ts";
import type { Invocation } from "../invocation.ts";
import { withExamples } from "../option.ts";
import { writeTo } from "../surroundings.ts";

export function registerCompletion(program: Command, invocation: Invocation): void {
  withExamples(
    program
      .command("completion")
      .addArgument(new Argument("<shell>", "which shell").choices(COMPLETION_SHELLS))
      .summary("print a script that completes words in your shell")
      .description(
        "Print a script that lets a shell complete verbs, options, and the names of sandboxes, turns, processes, templates " +
          "and instances, which it asks the server for.",
      ),
    [
      ["source <(turnbox completion bash)", "in ~/.bashrc"],
      ["source <(turnbox completion zsh)", "in ~/.zshrc, after compinit"],
      ["turnbox completion fish | source", "in ~/.config/fish/config.fish"],
    ],
  ).action(async (shell: Shell) => {
    const verbs = visibleCommands(program).map((command) => command.name());
    await writeTo(invocation.surroundings.stdout, completionScript(shell, verbs));
  });
}

/** What the scripts ask: everything behind the program's name, the word at the cursor last. */
export function registerComplete(program: Command, invocation: Invocation): void {
  program
    .command("__complete [words...]", { hidden: true })
    .helpOption(false)
    .action(async (words: readonly string[]) => {
      const candidates = await complete(program, words, invocation);
      const lines = candidates.map(({ value, note }) => `${value}${note === "" ? "" : `\t${note}`}\n`);
      await writeTo(invocation.surroundings.stdout, lines.join(""));
    });
}
