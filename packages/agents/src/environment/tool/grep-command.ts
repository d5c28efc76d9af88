import { done, listed, refused, type ToolOutcome } from "./outcome.ts";
import type { ToolParams } from "./tool-schemas.ts";

/**
 * The arguments of grep(1), which searches and can be ended whatever the pattern is. Expressions are its extended ones.
 * Hidden directories and binary files are passed over, links are not followed.
 */
export function grepArguments(params: ToolParams<"grep">, path: string): readonly string[] {
  return [
    "-rnHI",
    params.literal ? "-F" : "-E",
    ...(params.context_lines > 0 ? [`-C${String(params.context_lines)}`] : []),
    "--exclude-dir=.?*",
    ...(params.include === undefined ? [] : [`--include=${params.include}`]),
    ...(params.exclude === undefined ? [] : [`--exclude=${params.exclude}`, `--exclude-dir=${params.exclude}`]),
    "-e",
    params.pattern,
    "--",
    path,
  ];
}

export interface CommandOutput {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function toMatches({ exitCode, stdout, stderr }: CommandOutput, maxResults: number): ToolOutcome {
  if (exitCode > 1 && stdout === "") return refused(stderr.trim());
  const lines = stdout.split("\n").filter((line) => line !== "");
  const shown = lines.slice(0, maxResults).map((line) => line.replace(/^\.\//, ""));
  return done(lines.length === 0 ? "Nothing matches." : listed(shown, lines.length, ["line", "lines"]));
}
