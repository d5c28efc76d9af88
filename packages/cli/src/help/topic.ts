import { EXIT_CODE_RULES, EXIT_CODES } from "../exit-code.ts";
import { wrapWords } from "../format/wrap-words.ts";
import { ENVIRONMENT_VARIABLES } from "./environment-variables.ts";

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
