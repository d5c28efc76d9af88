import { EXIT_CODE_RULES, EXIT_CODES } from "../exit-code.ts";
import { wrapWords } from "../format/wrap-words.ts";

export interface VariableRow {
  readonly name: string;
  readonly meaning: string;
}

/** What the command line reads from its environment; the server's own settings are in docs/OPERATIONS.md. */
export const ENVIRONMENT_VARIABLES: readonly VariableRow[] = [
  { name: "TURNBOX_URL", meaning: "the server's address, where --url is not given" },
  { name: "TURNBOX_TOKEN", meaning: "the server's token, where neither --token nor --token-file is given" },
  { name: "TURNBOX_TOKEN_FILE", meaning: "a file that holds the token, where TURNBOX_TOKEN is not set either" },
  { name: "TURNBOX_HOME", meaning: "the home of the server on this machine, with its token (default: ~/.turnbox)" },
  { name: "TURNBOX_PORT", meaning: "the port of the server on this machine: for `up`, and where no address is given" },
  { name: "TURNBOX_MCP_TOKEN", meaning: "for `mcp --http`: the token that its clients show" },
  { name: "NO_COLOR", meaning: "any value but the empty one: no colours" },
  { name: "FORCE_COLOR", meaning: "colours also where the output is no terminal; 0 or false: none at all" },
  { name: "TERM", meaning: "`dumb`: no colours; `shell` passes it on" },
  { name: "LC_ALL, LC_CTYPE, LANG", meaning: "the first that is set: whether a terminal shows more than ASCII" },
  { name: "OTEL_EXPORTER_OTLP_ENDPOINT", meaning: "where traces of the calls go (default: nowhere)" },
];

/** What `turnbox help` knows besides the verbs. */
export const TOPICS = ["exit-codes", "environment"] as const;
export type Topic = (typeof TOPICS)[number];

export const isTopic = (word: string | undefined): word is Topic =>
  (TOPICS as readonly (string | undefined)[]).includes(word);

type Row = readonly [term: string, meaning: string];

export function formatTopic(topic: Topic, width: number): string {
  if (topic === "environment")
    return `Environment variables:\n${formatRows(
      ENVIRONMENT_VARIABLES.map(({ name, meaning }): Row => [name, meaning]),
      width,
    )}`;
  const rows = EXIT_CODES.map(({ code, meaning }): Row => [code, meaning]);
  return `Exit codes:\n${formatRows(rows, width)}\n${wrapWords(EXIT_CODE_RULES, { width, indent: "" })}\n`;
}

function formatRows(rows: readonly Row[], width: number): string {
  const termWidth = Math.max(...rows.map(([term]) => term.length));
  const indent = " ".repeat(termWidth + 4);
  return rows
    .map(([term, meaning]) => `${wrapWords(`  ${term.padEnd(termWidth)}  ${meaning}`, { width, indent })}\n`)
    .join("");
}
