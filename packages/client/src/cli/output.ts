import type { SandboxError } from "@turnbox/core";
import { formatError, toErrorReport } from "./error-report.ts";
import { type Surroundings, writeTo } from "./surroundings.ts";

export type OutputFormat = "text" | "json";

/** A result in both formats: `json` is the documented shape, `text` is for people and ends with a line end. */
export interface Result {
  readonly json: object;
  readonly text: string;
}

/** How a verb speaks. Results and JSON errors go to stdout; everything else goes to stderr. */
export interface Output {
  readonly format: OutputFormat;
  result(result: Result): Promise<void>;
  /** Progress for people; silent under `--json`. */
  note(line: string): Promise<void>;
  /** `remedy` stands in for the error's own. */
  error(error: SandboxError, remedy?: string): Promise<void>;
  /** Bold where stdout is a terminal that may be coloured, plain elsewhere. */
  bold(text: string): string;
}

export function createOutput(
  { stdout, stderr, environment }: Pick<Surroundings, "stdout" | "stderr" | "environment">,
  format: OutputFormat,
): Output {
  const styled = stdout.isTTY === true && environment.color === "allowed";
  return {
    format,
    result: async ({ json, text }) => {
      await writeTo(stdout, format === "json" ? `${JSON.stringify(json)}\n` : text);
    },
    note: async (line) => {
      if (format === "text") await writeTo(stderr, `${line}\n`);
    },
    error: async (error, remedy) => {
      if (format === "json") await writeTo(stdout, `${JSON.stringify(toErrorReport(error, remedy))}\n`);
      else await writeTo(stderr, formatError(error, remedy));
    },
    bold: (text) => (styled ? `\u001b[1m${text}\u001b[22m` : text),
  };
}
