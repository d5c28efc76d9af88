import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { invalidArgument, SandboxError, systemClock } from "@turnbox/core";
import { defaultHome } from "./config.ts";
import { failureText, serve } from "./serve.ts";
import { stopOnSignals } from "./stop-on-signals.ts";

const USAGE = `usage: turnbox-orchestrator serve [--home DIR] [--port N] [--host-entry PATH]

  --home DIR          where everything is kept (default: TURNBOX_HOME, or ~/.turnbox)
  --port N            the port to listen on (default: TURNBOX_PORT, or 7700; 0 lets the system choose)
  --host-entry PATH   the program of the sandbox-host (default: the one installed beside this one)
`;

const HOST_PACKAGE = "@turnbox/sandbox-host";

async function main(argv: readonly string[]): Promise<void> {
  const { values, positionals } = parse(argv);
  const [command, ...rest] = positionals;
  if (values.help === true || command === undefined) {
    process.stdout.write(USAGE);
    return;
  }
  if (command !== "serve" || rest.length > 0) throw invalidArgument("command", `must be serve\n${USAGE}`);
  await serve({
    home: resolve(values.home ?? defaultHome()),
    port: values.port === undefined ? undefined : parsePort(values.port),
    hostEntry: values["host-entry"] === undefined ? resolveHostEntry(import.meta.url) : resolve(values["host-entry"]),
    print: (text) => process.stdout.write(text),
    stop: stopOnSignals({
      source: process,
      clock: systemClock,
      // The hosts notice that their parent has gone.
      exit: (exitCode) => process.exit(exitCode),
    }),
  });
}

/** The program of the sandbox-host that is installed beside the file at `from` (a URL), or `COMMAND_MISSING`. */
function resolveHostEntry(from: string): string {
  try {
    const manifest = createRequire(from).resolve(`${HOST_PACKAGE}/package.json`);
    const { bin } = JSON.parse(readFileSync(manifest, "utf8")) as { readonly bin: Readonly<Record<string, string>> };
    const entry = Object.values(bin)[0];
    if (entry !== undefined) return join(dirname(manifest), entry);
  } catch (cause) {
    throw new SandboxError("COMMAND_MISSING", `${HOST_PACKAGE} is not installed; give its program with --host-entry`, {
      cause,
    });
  }
  throw new SandboxError("COMMAND_MISSING", `${HOST_PACKAGE} has no program; give one with --host-entry`);
}

function parse(argv: readonly string[]) {
  try {
    return parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        home: { type: "string" },
        port: { type: "string" },
        "host-entry": { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (cause) {
    throw invalidArgument("arguments", `${cause instanceof Error ? cause.message : String(cause)}\n${USAGE}`);
  }
}

function parsePort(raw: string): number {
  const port = Number(raw);
  if (!/^\d{1,5}$/.test(raw) || port > 65_535) throw invalidArgument("--port", "must be from 0 to 65535");
  return port;
}

function fail(thrown: unknown): never {
  const error = SandboxError.from(thrown);
  const cause = error.reason === "INTERNAL" && thrown instanceof Error ? `${thrown.stack ?? thrown.message}\n` : "";
  process.stderr.write(`${failureText(error)}${cause}`);
  process.exit(1);
}

process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);
main(process.argv.slice(2)).then(() => process.exit(0), fail);
