import type { SandboxError } from "@turnbox/core";
import type { Charset } from "../config.ts";
import { formatError, toErrorReport } from "./error-report.ts";
import { type Surroundings, writeTo } from "./surroundings.ts";

const COLORS = { red: 31, green: 32, yellow: 33, magenta: 35, cyan: 36 } as const;
export type Color = keyof typeof COLORS;

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
  /** Coloured under the same condition. */
  paint(color: Color, text: string): string;
  /** Whether stdout is a terminal. */
  readonly to: "terminal" | "elsewhere";
  /** What stdout shows well: more than ASCII only on a terminal whose locale says so. */
  readonly charset: Charset;
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
    paint: (color, text) => (styled ? `\u001b[${String(COLORS[color])}m${text}\u001b[39m` : text),
    to: stdout.isTTY === true ? "terminal" : "elsewhere",
    charset: stdout.isTTY === true ? environment.charset : "ascii",
  };
}
