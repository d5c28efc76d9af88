import type { SandboxError } from "@turnbox/core";
import type { Charset } from "@turnbox/client/internal";
import { formatError, toErrorReport } from "./error-report.ts";
import type { TableLook } from "./format/table.ts";
import { createStyle, type Style } from "./style.ts";
import { type Surroundings, writeTo } from "./surroundings.ts";

export type OutputFormat = "text" | "json";

/** A result in both formats: `json` is the documented shape, `text` is for people and ends with a line end. */
export interface Result {
  readonly json: object;
  readonly text: string;
}

/** How a verb speaks. Results and JSON errors go to stdout; everything else goes to stderr. The style is that of stdout. */
export interface Output extends Style {
  readonly format: OutputFormat;
  result(result: Result): Promise<void>;
  /** Progress for people; silent under `--json`. */
  note(line: string): Promise<void>;
  /** `remedy` stands in for the error's own. */
  error(error: SandboxError, remedy?: string): Promise<void>;
  /** Whether stdout is a terminal. */
  readonly to: "terminal" | "elsewhere";
  /** Characters on a line of stdout if it is a terminal that knows its size. */
  readonly columns: number | undefined;
  /** What stdout shows well: more than ASCII only on a terminal whose locale says so. */
  readonly charset: Charset;
}

/** How a table looks on stdout. */
export const tableLook = (output: Pick<Output, keyof Style | "columns">): TableLook => ({
  style: output,
  columns: output.columns,
});

export function createOutput(
  { stdout, stderr, environment }: Pick<Surroundings, "stdout" | "stderr" | "environment">,
  format: OutputFormat,
): Output {
  return {
    ...createStyle(stdout, environment),
    format,
    result: async ({ json, text }) => {
      await writeTo(stdout, format === "json" ? `${JSON.stringify(json)}\n` : text);
    },
    note: async (line) => {
      if (format === "text") await writeTo(stderr, `${line}\n`);
    },
    error: async (error, remedy) => {
      if (format === "json") await writeTo(stdout, `${JSON.stringify(toErrorReport(error, remedy))}\n`);
      else
        await writeTo(stderr, formatError(error, { stream: stderr, style: createStyle(stderr, environment), remedy }));
    },
    to: stdout.isTTY === true ? "terminal" : "elsewhere",
    columns: stdout.isTTY === true && stdout.columns !== 0 ? stdout.columns : undefined,
    charset: stdout.isTTY === true ? environment.charset : "ascii",
  };
}
