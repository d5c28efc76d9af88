import { readFileSync } from "node:fs";
import { createInterface } from "node:readline/promises";
import { createChildCommandRunner, SandboxError, systemClock } from "@turnbox/core";
import { openTracing } from "@turnbox/rpc/trace";
import { createHttp2ConnectionWith, type Environment, parseEnvironment } from "@turnbox/client/internal";
import { exitCodeOf } from "./exit-code.ts";
import { createInterrupts } from "./interrupts.ts";
import { createOutput } from "./output.ts";
import { createTerminalInput } from "./process/terminal-input.ts";
import { runCli } from "./run-cli.ts";
import type { Surroundings } from "./surroundings.ts";

const BROKEN_PIPE_EXIT = 141;

/** The reader of our output is gone (`turnbox ls | head -1`). */
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(BROKEN_PIPE_EXIT);
  throw error;
});

function ownVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    readonly version: string;
  };
  return manifest.version;
}

/** The question goes to stderr: stdout is for results. */
async function ask(question: string, options: { readonly signal: AbortSignal }): Promise<string> {
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await reader.question(question, options);
  } finally {
    reader.close();
  }
}

async function main(environment: Environment): Promise<number> {
  const path = environment.variables["PATH"];
  const runner = createChildCommandRunner(path === undefined ? {} : { path });
  using interrupts = createInterrupts(process, (exitCode) => process.exit(exitCode));
  const version = ownVersion();
  const args = process.argv.slice(2);
  await using tracing = await openTracing({
    serviceName: "turnbox-cli",
    version,
    env: environment.variables,
    clock: systemClock,
    onProblem: (message) => process.stderr.write(`traces: ${message}\n`),
  });
  const surroundings: Surroundings = {
    environment,
    version,
    searchFrom: [import.meta.dirname, process.cwd()],
    stdin: createTerminalInput(process.stdin, runner),
    stdout: process.stdout,
    stderr: process.stderr,
    ...(process.stdin.isTTY ? { ask } : {}),
    clock: systemClock,
    runner,
    interrupts,
    connect: createHttp2ConnectionWith([tracing.client]),
  };
  // Arguments may be secrets; the verb is not.
  return await tracing.span({ name: `turnbox ${verbIn(args)}`.trimEnd() }, () => runCli(args, surroundings));
}

const verbIn = ([first = ""]: readonly string[]): string => (/^[a-z]{1,20}$/.test(first) ? first : "");

try {
  process.exitCode = await main(parseEnvironment(process.env));
  // Input that was left open must not hold the process.
  process.stdin.destroy();
} catch (thrown) {
  const error = SandboxError.from(thrown);
  const format = process.argv.includes("--json") ? "json" : "text";
  const environment: Environment = { home: "", server: {}, color: "refused", charset: "ascii", variables: {} };
  await createOutput({ stdout: process.stdout, stderr: process.stderr, environment }, format).error(error);
  process.exitCode = exitCodeOf(error);
}
// A stdin that is not read to its end would keep the program alive.
process.stdin.destroy();
