import { readFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../bootstrap/layout.mjs";

/**
 * The parts of docs/CLI.md that follow from the command line itself. Each stands between `<!-- generated: NAME -->` and
 * `<!-- end of NAME -->`; what is around them is written by hand.
 */
const load = (file) => import(pathToFileURL(path.join(root, "packages/cli/dist", file)).href);

/** Options of nearly every verb, told once. */
const COMMON = ["--json", "--url", "--token", "--token-file"];

const cell = (text) => text.replaceAll("|", "\\|").replaceAll("*", "\\*");
const row = (cells) => `| ${cells.join(" | ")} |`;
const table = (head, rows) => [head, head.map(() => "---"), ...rows].map(row).join("\n");

/** A program whose help is written into a string. Registering the verbs needs nothing else of the surroundings. */
async function openProgram() {
  const { createProgram } = await load("program.js");
  let written = "";
  const stdout = { write: (text) => (written += text) };
  const program = createProgram({ surroundings: { version: "", stdout, environment: { color: "refused" } } });
  const helpOf = (command) => {
    written = "";
    command.outputHelp();
    return written;
  };
  return { program, helpOf };
}

const usageOf = ({ command, path: names }) => `turnbox ${[...names, command.usage()].join(" ")}`;

function verbs(leaves) {
  const topics = Map.groupBy(leaves, ({ command, path: [first] }) => {
    let top = command;
    while (top.parent?.parent) top = top.parent;
    return top.name() === first ? top.helpGroup() : "";
  });
  const rows = [...topics].flatMap(([topic, some]) => [
    [`**${topic.replace(/:$/, "")}**`, ""],
    ...some.map(({ command, path: names }) => [
      `[\`${names.join(" ")}\`](#turnbox-${names.join("-")})`,
      cell(command.summary()),
    ]),
  ]);
  return table(["verb", "what it does"], rows);
}

function reference(leaves, helpOf) {
  return leaves
    .map((leaf) => {
      const { command, path: names } = leaf;
      const all = command.createHelp().visibleOptions(command);
      const options = all.filter(({ long }) => long !== "--help" && !COMMON.includes(long));
      const helper = command.createHelp();
      const rows = options.map((option) => [
        `\`${option.flags.replaceAll("|", "\\|")}\``,
        cell(helper.optionDescription(option)),
      ]);
      const [, examples = ""] = helpOf(command).split("\nExamples:\n");
      return [
        `### turnbox ${names.join(" ")}`,
        `\`${usageOf(leaf)}\``,
        cell(command.description()),
        ...(rows.length === 0 ? [] : [table(["option", "what it says"], rows)]),
        `\`\`\`console\n${examples.trimEnd().replaceAll(/^ {2}/gm, "")}\n\`\`\``,
      ].join("\n\n");
    })
    .join("\n\n");
}

/** docs/CLI.md as it is, with its generated parts made anew. */
export async function cliDocument() {
  const { listLeaves } = await load("help/find-command.js");
  const { EXIT_CODES, EXIT_CODE_RULES } = await load("exit-code.js");
  const { ENVIRONMENT_VARIABLES } = await load("help/topic.js");
  const { program, helpOf } = await openProgram();
  const leaves = listLeaves(program);
  const names = (text) => text.split(", ").map((name) => `\`${name}\``);
  const parts = {
    verbs: verbs(leaves),
    reference: reference(leaves, helpOf),
    "exit codes": `${table(
      ["code", "meaning"],
      EXIT_CODES.map(({ code, meaning }) => [code, cell(meaning)]),
    )}\n\n${EXIT_CODE_RULES}`,
    environment: table(
      ["variable", "meaning"],
      ENVIRONMENT_VARIABLES.map(({ name, meaning }) => [names(name).join(", "), cell(meaning)]),
    ),
  };
  return Object.entries(parts).reduce(
    (text, [name, part]) => {
      const [start, end] = [`<!-- generated: ${name} -->`, `<!-- end of ${name} -->`];
      const [from, to] = [text.indexOf(start), text.indexOf(end)];
      if (from < 0 || to < from) throw new Error(`docs/CLI.md has no place for the generated part "${name}"`);
      return `${text.slice(0, from)}${start}\n\n${part}\n\n${text.slice(to)}`;
    },
    readFileSync(path.join(root, "docs/CLI.md"), "utf8"),
  );
}
