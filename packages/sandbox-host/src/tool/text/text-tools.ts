import { objectOf, pathSchema, type Tool } from "../schema.ts";

const WHERE = "Absolute, or relative to /workspace.";
/** Whatever the characters are, they fit in a message to a file worker. More goes through the file service. */
const MAX_CONTENT_CHARACTERS = 4 * 1024 * 1024;
const MAX_EDIT_CHARACTERS = 1024 * 1024;
const MAX_PATTERN_CHARACTERS = 4096;

/** The defaults of parameters of the file tools. */
export const TEXT_DEFAULTS = { readLines: 2000, listDepth: 1, globResults: 200, grepResults: 100 } as const;

export const TEXT_TOOLS = [
  {
    name: "read_file",
    aliases: ["Read", "read"],
    tier: 1,
    effect: "reads",
    description:
      "Reads a file. Text comes with line numbers, each followed by a tab; PNG, JPEG, GIF and WebP images of up to 5 MB come as " +
      "images. Lines of more than 2000 characters are cut. Large files are read in parts: the answer says how many lines there " +
      "are and where to go on.",
    schema: objectOf(
      {
        path: pathSchema(`The file. ${WHERE}`),
        offset: {
          type: "integer",
          description: "The first line to read, counted from 1.",
          minimum: 1,
          maximum: 2_000_000_000,
          default: 1,
        },
        limit: {
          type: "integer",
          description: "How many lines to read.",
          minimum: 1,
          maximum: TEXT_DEFAULTS.readLines,
          default: TEXT_DEFAULTS.readLines,
        },
      },
      ["path"],
    ),
  },
  {
    name: "write_file",
    aliases: ["Write", "write"],
    tier: 1,
    effect: "writes",
    description:
      "Writes a whole file, in one step: a file that is there already is replaced. To change a part of a file, use edit_file.",
    schema: objectOf(
      {
        path: pathSchema(`The file. ${WHERE}`),
        content: { type: "string", description: "All of its text.", maxLength: MAX_CONTENT_CHARACTERS },
        create_dirs: {
          type: "boolean",
          description: "Make the directories of the path that are missing.",
          default: false,
        },
      },
      ["path", "content"],
    ),
  },
  {
    name: "edit_file",
    aliases: ["Edit", "edit"],
    tier: 1,
    effect: "writes",
    description:
      "Replaces a text in a file by another. old_string must be exactly what is in the file, with its indentation and without the " +
      "line numbers of read_file, and must occur once unless replace_all is set. Where it is not found, the answer shows the " +
      "nearest match.",
    schema: objectOf(
      {
        path: pathSchema(`The file. ${WHERE}`),
        old_string: {
          type: "string",
          description: "The text to replace.",
          minLength: 1,
          maxLength: MAX_EDIT_CHARACTERS,
        },
        new_string: {
          type: "string",
          description: "What to put in its place; not the same as old_string.",
          maxLength: MAX_EDIT_CHARACTERS,
        },
        replace_all: { type: "boolean", description: "Replace every occurrence.", default: false },
      },
      ["path", "old_string", "new_string"],
    ),
  },
  {
    name: "list_dir",
    aliases: ["LS", "ls", "list_directory"],
    tier: 1,
    effect: "reads",
    description:
      "Lists what is in a directory, hidden files included: directories end in a slash, files have their size. At most 1000 entries.",
    schema: objectOf(
      {
        path: { ...pathSchema(`The directory. ${WHERE}`), default: "." },
        depth: {
          type: "integer",
          description: "How many levels to list; 1 is the directory itself.",
          minimum: 1,
          maximum: 20,
          default: TEXT_DEFAULTS.listDepth,
        },
      },
      [],
    ),
  },
  {
    name: "grep",
    aliases: ["Grep", "search"],
    tier: 1,
    effect: "reads",
    description:
      "Searches the lines of files for a regular expression (JavaScript syntax; begin with (?i) to ignore case) and shows them as " +
      "path:line:text. Hidden directories and binary files are passed over. The answer says how many matches are not shown.",
    schema: objectOf(
      {
        pattern: {
          type: "string",
          description: "What to search for, within one line.",
          minLength: 1,
          maxLength: MAX_PATTERN_CHARACTERS,
        },
        path: { ...pathSchema(`The directory or file to search. ${WHERE}`), default: "." },
        include: {
          type: "string",
          description: "Only files that match this pattern, like *.ts or src/**/*.{js,ts}.",
          minLength: 1,
          maxLength: MAX_PATTERN_CHARACTERS,
        },
        exclude: {
          type: "string",
          description: "No files and directories that match this pattern, like node_modules or {dist,build}.",
          minLength: 1,
          maxLength: MAX_PATTERN_CHARACTERS,
        },
        literal: {
          type: "boolean",
          description: "Take the pattern as plain text, not as a regular expression.",
          default: false,
        },
        context_lines: {
          type: "integer",
          description: "How many lines to show before and after each match.",
          minimum: 0,
          maximum: 20,
          default: 0,
        },
        max_results: {
          type: "integer",
          description: "How many matches to show.",
          minimum: 1,
          maximum: 1000,
          default: TEXT_DEFAULTS.grepResults,
        },
      },
      ["pattern"],
    ),
  },
  {
    name: "glob",
    aliases: ["Glob", "find_files"],
    tier: 1,
    effect: "reads",
    description:
      "Finds files and directories by their names: * and ? stay within a name, ** spans directories, {a,b} and [a-z] choose. The " +
      "paths are sorted and can be given to the other tools as they are. Hidden ones are found only where the pattern names their " +
      "dot, as in .github/**.",
    schema: objectOf(
      {
        pattern: {
          type: "string",
          description: "The pattern, relative to path, like **/*.py.",
          minLength: 1,
          maxLength: MAX_PATTERN_CHARACTERS,
        },
        path: { ...pathSchema(`The directory to look in. ${WHERE}`), default: "." },
        max_results: {
          type: "integer",
          description: "How many paths to show.",
          minimum: 1,
          maximum: 2000,
          default: TEXT_DEFAULTS.globResults,
        },
      },
      ["pattern"],
    ),
  },
] as const satisfies readonly Tool[];

export type TextToolName = (typeof TEXT_TOOLS)[number]["name"];
