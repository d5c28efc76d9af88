import { parseArgs } from "node:util";

export interface BenchArguments {
  /** Which rows; all unless given. */
  readonly only: RegExp | undefined;
  readonly jsonPath: string | undefined;
  readonly size: "full" | "quick";
  readonly action: "measure" | "profile" | "list" | "help";
  /** Whether the documents get the table and the plot. */
  readonly publish: boolean;
  /** Where to draw how the time of one row is spent, instead of measuring. */
  readonly profile:
    | { readonly svgPath: string; readonly repository: string | undefined; readonly seconds: number }
    | undefined;
}

const DEFAULT_PROFILE_SECONDS = 10;

/** The command line is wrong; the message says how. */
export class UsageError extends Error {}

export const USAGE = `usage: npm run bench -- [options]
  --only REGEX   measure only rows whose id matches
  --quick        fewer samples: shows that the harness works, not how fast anything is
  --json FILE    also write the results to FILE
  --publish      put the table into docs/PERFORMANCE.md and the plot into docs/img/bench.svg
  --profile FILE draw a flame graph of the first row that matches into FILE, and measure nothing
  --seconds N    for how long (${DEFAULT_PROFILE_SECONDS}); less than the row takes
  --of DIRECTORY in another checkout of this repository, which is built
  --rows         list the rows and their bars, and measure nothing
  --help         this text
exit code: 0 all bars hold, 1 a bar is missed, 2 wrong usage or a missing part`;

export function parseArguments(args: readonly string[]): BenchArguments {
  const { values } = parse(args);
  return {
    only: values.only === undefined ? undefined : toRegExp(values.only),
    jsonPath: values.json,
    size: values.quick === true ? "quick" : "full",
    action: actionOf(values),
    publish: values.publish === true,
    profile:
      values.profile === undefined
        ? undefined
        : { svgPath: values.profile, repository: values.of, seconds: toSeconds(values.seconds) },
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
        profile: { type: "string" },
        seconds: { type: "string" },
        of: { type: "string" },
        rows: { type: "boolean" },
        help: { type: "boolean" },
      },
    });
  } catch (thrown) {
    throw new UsageError(thrown instanceof Error ? thrown.message : String(thrown));
  }
}

function actionOf({ help, rows, profile }: ReturnType<typeof parse>["values"]): BenchArguments["action"] {
  if (help === true) return "help";
  if (rows === true) return "list";
  return profile === undefined ? "measure" : "profile";
}

function toRegExp(text: string): RegExp {
  try {
    return new RegExp(text);
  } catch {
    throw new UsageError(`--only: ${JSON.stringify(text)} is not a regular expression`);
  }
}

function toSeconds(text: string | undefined): number {
  const seconds = text === undefined ? DEFAULT_PROFILE_SECONDS : Number(text);
  if (!(seconds > 0)) throw new UsageError(`--seconds: ${JSON.stringify(text)} is not a number of seconds`);
  return seconds;
}
