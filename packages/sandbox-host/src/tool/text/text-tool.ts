import { GlobError } from "@turnbox/core";
import { FileFailure, toFileFailure } from "../../file/failure.ts";
import type { Walk } from "../../file/walk.ts";
import type { Parameters } from "../parameters.ts";
import { editFile, writeFile } from "./change-file.ts";
import { grep } from "./grep.ts";
import { PatternError } from "./line-search.ts";
import { glob, listDir } from "./list-paths.ts";
import { refused, type TextOutcome } from "./outcome.ts";
import { readFile } from "./read-file.ts";
import { suggestNames } from "./similar-names.ts";
import { TEXT_DEFAULTS, type TextToolName } from "./text-tools.ts";

/** Parameters that have passed the catalog's schema. */
interface Checked {
  readonly text: (name: string, otherwise?: string) => string;
  readonly number: (name: string, otherwise: number) => number;
  readonly flag: (name: string) => boolean;
}

const TOOLS: Readonly<Record<TextToolName, (walk: Walk, checked: Checked) => TextOutcome>> = {
  read_file: (walk, { text, number }) =>
    readFile(walk, {
      path: text("path"),
      offset: number("offset", 1),
      limit: number("limit", TEXT_DEFAULTS.readLines),
    }),
  write_file: (walk, { text, flag }) =>
    writeFile(walk, {
      path: text("path"),
      content: text("content"),
      parents: flag("create_dirs") ? "create" : "require",
    }),
  edit_file: (walk, { text, flag }) =>
    editFile(walk, {
      path: text("path"),
      oldText: text("old_string"),
      newText: text("new_string"),
      replace: flag("replace_all") ? "all" : "one",
    }),
  list_dir: (walk, { text, number }) =>
    listDir(walk, { path: text("path", "."), depth: number("depth", TEXT_DEFAULTS.listDepth) }),
  glob: (walk, { text, number }) =>
    glob(walk, {
      pattern: text("pattern"),
      path: text("path", "."),
      maxResults: number("max_results", TEXT_DEFAULTS.globResults),
    }),
  grep: (walk, { text, number, flag }) =>
    grep(walk, {
      pattern: text("pattern"),
      syntax: flag("literal") ? "literal" : "regex",
      path: text("path", "."),
      include: text("include", ""),
      exclude: text("exclude", ""),
      contextLines: number("context_lines", 0),
      maxResults: number("max_results", TEXT_DEFAULTS.grepResults),
    }),
};

export interface TextRequest {
  readonly tool: TextToolName;
  readonly parameters: Parameters;
}

/** Runs a file tool, in a file worker. What cannot be done with the files is a result; only the storage can fail. */
export function textTool({ walk }: { readonly walk: Walk }, { tool, parameters }: TextRequest): TextOutcome {
  try {
    return TOOLS[tool](walk, checkedOf(parameters));
  } catch (thrown) {
    return explain(thrown, { walk, path: parameters["path"] });
  }
}

function checkedOf(parameters: Parameters): Checked {
  return {
    text: (name, otherwise = "") => (parameters[name] as string | undefined) ?? otherwise,
    number: (name, otherwise) => (parameters[name] as number | undefined) ?? otherwise,
    flag: (name) => parameters[name] === true,
  };
}

/** Reasons that a model can do something about. */
const EXPLAINED: readonly string[] = ["FILE_NOT_FOUND", "PATH_REFUSED", "INVALID_ARGUMENT", "QUOTA_EXCEEDED"];

function explain(thrown: unknown, { walk, path }: { readonly walk: Walk; readonly path: unknown }): TextOutcome {
  if (thrown instanceof GlobError || thrown instanceof PatternError) return refused(sentence(thrown.message));
  const failure = toFileFailure(thrown);
  if (!EXPLAINED.includes(failure.reason)) throw thrown instanceof FileFailure ? failure : thrown;
  const similar = failure.reason === "FILE_NOT_FOUND" && typeof path === "string" ? suggestNames(walk, path) : "";
  return refused(`${sentence(failure.message)}${similar}`);
}

function sentence(text: string): string {
  const full = /[.!?]$/.test(text) ? text : `${text}.`;
  return full.charAt(0).toUpperCase() + full.slice(1);
}
