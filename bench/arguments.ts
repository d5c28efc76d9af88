import { parseArgs } from "node:util";

export interface BenchArguments {
  /** Which rows; all unless given. */
  readonly only: RegExp | undefined;
  readonly jsonPath: string | undefined;
  readonly size: "full" | "quick";
  readonly action: "measure" | "list" | "help";
  /** Whether the documents get the table and the plot. */
  readonly publish: boolean;
}

/** The command line is wrong; the message says how. */
export class UsageError extends Error {}

export const USAGE = `usage: npm run bench -- [options]
  --only REGEX   measure only rows whose id matches
  --quick        fewer samples: shows that the harness works, not how fast anything is
  --json FILE    also write the results to FILE
  --publish      put the table into docs/PERFORMANCE.md and the plot into docs/img/bench.svg
  --rows         list the rows and their bars, and measure nothing
  --help         this text
exit code: 0 all bars hold, 1 a bar is missed, 2 wrong usage or a missing part`;

export function parseArguments(args: readonly string[]): BenchArguments {
  const { values } = parse(args);
  return {
    only: values.only === undefined ? undefined : toRegExp(values.only),
    jsonPath: values.json,
    size: values.quick === true ? "quick" : "full",
    action: values.help === true ? "help" : values.rows === true ? "list" : "measure",
    publish: values.publish === true,
  };
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        only: { type: "string" },
        json: { type: "string" },
        quick: { type: "boolean" },
        publish: { type: "boolean" },
        rows: { type: "boolean" },
        help: { type: "boolean" },
      },
    });
  } catch (thrown) {
    throw new UsageError(thrown instanceof Error ? thrown.message : String(thrown));
  }
}

function toRegExp(text: string): RegExp {
  try {
    return new RegExp(text);
  } catch {
    throw new UsageError(`--only: ${JSON.stringify(text)} is not a regular expression`);
  }
}
