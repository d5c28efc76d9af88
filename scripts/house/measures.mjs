import { fileCycles, folderCycles } from "./cycles.mjs";
import { foreignPrograms } from "./foreign-programs.mjs";
import { longFunctions } from "./functions.mjs";
import { readRetired } from "./glossary.mjs";
import { protocolImports } from "./protocol-imports.mjs";
import { retiredWords } from "./retired-words.mjs";
import { singleUseFiles } from "./single-use.mjs";
import { readSources } from "./sources.mjs";
import { unnamedTests } from "./test-names.mjs";
import { listLogMessages } from "./words.mjs";

const changingMessages = (sources) =>
  listLogMessages(sources)
    .filter(({ text }) => text === undefined)
    .map(({ at, source }) => ({ at, what: source }));

/**
 * What is measured, each a list of findings with where it is (`at`) and `what` it is. Those with a `group` are counted for each
 * package.
 */
const MEASURES = {
  "folders in a cycle": folderCycles,
  "files in a cycle": fileCycles,
  "functions over 80 lines": (sources) => longFunctions(sources, 80),
  "functions over 60 lines": (sources) => longFunctions(sources, 60),
  "imports of the protocol beside the library": protocolImports,
  "programs inside strings": foreignPrograms,
  "small files for one neighbour": singleUseFiles,
  "log messages that are no constants": changingMessages,
  "tests named after no file": unnamedTests,
  "retired words": (sources, root) => retiredWords(sources, readRetired(root)),
};

/** All measures of the repository at `root`, by name. */
export function measureAll(root) {
  const sources = readSources(root);
  return Object.fromEntries(Object.entries(MEASURES).map(([name, measure]) => [name, measure(sources, root)]));
}

/** The number of a measure, or its numbers by package where it is counted for each. */
function countOf(findings) {
  if (!findings.some(({ group }) => group !== undefined)) return findings.length;
  const groups = Object.groupBy(findings, ({ group }) => group);
  return Object.fromEntries(
    Object.entries(groups)
      .sort()
      .map(([name, found]) => [name, found.length]),
  );
}

/** The numbers of all measures, by name. A measure that finds nothing is 0. */
export const countAll = (measured) =>
  Object.fromEntries(Object.entries(measured).map(([name, findings]) => [name, countOf(findings)]));
