import type { Command } from "commander";
import { SandboxError } from "@turnbox/core";
import { nearestWords } from "@turnbox/client/internal";
import { findCommand, visibleCommands } from "../help/find-command.ts";
import { helpWidth } from "../help/help-look.ts";
import { formatTopic, isTopic, TOPICS } from "../help/topic.ts";
import type { Invocation } from "../invocation.ts";
import { withExamples } from "../option.ts";
import { writeTo } from "../surroundings.ts";

export function registerHelp(program: Command, invocation: Invocation): void {
  program.helpCommand(false);
  withExamples(
    program
      .command("help [words...]")
      .usage("[verb | topic]")
      .summary("print help for a verb or a topic")
      .description(`Print the help of a verb, or one of the topics ${TOPICS.join(", ")}.`),
    [
      ["turnbox help rollback", "the same as `turnbox rollback --help`"],
      ["turnbox help template build oci", "a verb of a verb"],
      ["turnbox help exit-codes", "what the exit codes mean"],
      ["turnbox help environment", "which variables are read"],
    ],
  ).action(async (words: readonly string[]) => {
    const { stdout } = invocation.surroundings;
    const [first] = words;
    if (words.length === 1 && isTopic(first)) {
      await writeTo(stdout, formatTopic(first, helpWidth(stdout)));
      return;
    }
    const { command, path } = findCommand(program, words);
    const unknown = words[path.length];
    if (unknown !== undefined) throw unknownWord(unknown, command, path.length === 0 ? TOPICS : []);
    command.outputHelp();
  });
}

function unknownWord(word: string, command: Command, topics: readonly string[]): Error {
  const similar = nearestWords(word, [...visibleCommands(command).map((one) => one.name()), ...topics]);
  const guess = similar.length === 0 ? "" : ` (did you mean ${similar.join(" or ")}?)`;
  return new SandboxError("INVALID_ARGUMENT", `there is no help on ${JSON.stringify(word)}${guess}`, {
    metadata: { remedy: "Run `turnbox --help`, which lists the verbs and topics." },
  });
}
