import type { Command } from "commander";
import { SandboxError } from "@turnbox/core";
import { DEFAULT_PORT, readLockHolder, readServerRecord, serverLockPath } from "@turnbox/client/internal";
import type { Invocation } from "../invocation.ts";
import { type OutputOptions, withExamples, withOutputOption } from "../option.ts";
import { createSpinner } from "../progress/spinner.ts";
import { runForeground } from "../service/foreground-child.ts";
import { parseProgramFailure } from "../service/program-failure.ts";
import { findServiceProgram } from "../service/service-program.ts";
import { type OutputStream, writeTo } from "../surroundings.ts";

const READY_LINE = /^turnbox ready (\S+)$/m;
/** What is looked through for the ready line, and for the reason of a failure. */
const KEPT_CHARACTERS = 16 * 1024;

export function registerUp(program: Command, invocation: Invocation): void {
  withExamples(
    withOutputOption(program.command("up"))
      .summary("run the server in the foreground")
      .description(
        "Run the orchestrator and its sandbox-host in the foreground, on TURNBOX_HOME (default ~/.turnbox) and " +
          `TURNBOX_PORT (default: the configured one, else ${String(DEFAULT_PORT)}). Prints \`turnbox ready URL\` when it serves; Ctrl-C ends it.`,
      ),
    [
      ["turnbox up", "serve on 127.0.0.1:7700"],
      ["TURNBOX_HOME=/srv/t TURNBOX_PORT=7800 turnbox up", "another home on another port"],
    ],
  ).action(async (options: OutputOptions) => {
    invocation.exitWith(await up(options, invocation));
  });
}

async function up(options: OutputOptions, { surroundings, signal }: Invocation): Promise<number> {
  const { home, port, variables } = surroundings.environment;
  assertNotServed(home);
  const orchestrator = await findServiceProgram("@turnbox/orchestrator", surroundings, { signal });
  const host = await findServiceProgram("@turnbox/sandbox-host", surroundings, { signal });
  // Without a variable, the port is a matter of the home's configuration.
  const portArgs = port === undefined ? [] : ["--port", String(port)];
  const serve = ["serve", "--home", home, ...portArgs, "--host-entry", host.entry];
  const argv = [orchestrator.node, orchestrator.entry, ...serve] as const;
  const spec = { argv, env: variables, interrupts: surroundings.interrupts, clock: surroundings.clock };
  if (options.json === true) return await upAsJson(spec, surroundings);
  return surroundings.stderr.isTTY === true ? await upOnTerminal(spec, surroundings) : await runForeground(spec);
}

/** Says that the server starts until it has something to say itself. */
async function upOnTerminal(
  spec: Spec,
  { stdout, stderr, clock, environment: { charset } }: Invocation["surroundings"],
): Promise<number> {
  const { signal } = spec.interrupts;
  using spinner = createSpinner({ stream: stderr, clock, signal, charset, text: "starting the server" });
  const passTo = (stream: OutputStream) => (bytes: Uint8Array) => {
    spinner[Symbol.dispose]();
    stream.write(bytes, () => undefined);
  };
  return await runForeground({ ...spec, onOutput: { stdout: passTo(stdout), stderr: passTo(stderr) } });
}

/** The server itself would refuse too, and could not say where the other one is. */
function assertNotServed(home: string): void {
  const holder = readLockHolder(serverLockPath(home));
  if (holder === undefined) return;
  const pid = String(holder.pid);
  const record = readServerRecord(home);
  const where = record?.pid === holder.pid ? record.url : "not ready";
  throw new SandboxError("HOME_IN_USE", `a server runs on ${home} already: ${where}, process ${pid}`, {
    metadata: { home, pid },
  });
}

type Spec = Parameters<typeof runForeground>[0];

/** Prints one object when the server is ready, or the error it failed with. All that it prints goes to stderr. */
async function upAsJson(spec: Spec, { stdout, stderr, environment }: Invocation["surroundings"]): Promise<number> {
  const seen = { ready: false, stdout: "", stderr: "" };
  const pending: Promise<void>[] = [];
  const pass = (from: "stdout" | "stderr", bytes: Uint8Array): void => {
    pending.push(writeTo(stderr, bytes));
    seen[from] = (seen[from] + Buffer.from(bytes).toString("utf8")).slice(-KEPT_CHARACTERS);
  };
  const exitCode = await runForeground({
    ...spec,
    onOutput: {
      stdout: (bytes) => {
        pass("stdout", bytes);
        const url = seen.ready ? undefined : READY_LINE.exec(seen.stdout)?.[1];
        if (url === undefined) return;
        seen.ready = true;
        pending.push(writeTo(stdout, `${JSON.stringify({ ready: true, url, home: environment.home })}\n`));
      },
      stderr: (bytes) => {
        pass("stderr", bytes);
      },
    },
  });
  await Promise.all(pending);
  if (!seen.ready && exitCode !== 0) {
    throw parseProgramFailure(
      seen.stderr,
      `the server ended with exit code ${String(exitCode)}; what it said is on stderr`,
    );
  }
  return exitCode;
}
