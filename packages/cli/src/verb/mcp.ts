import { randomBytes } from "node:crypto";
import { type Command, Option } from "commander";
import { invalidArgument, Secret } from "@turnbox/core";
import { isLoopback, parsePort, readTokenFile } from "@turnbox/client/internal";
import type { Turnbox } from "@turnbox/client";
import type { McpSessionSpec } from "@turnbox/agents/mcp";
import { parseDuration } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { printable } from "../printable.ts";
import { writeTo } from "../surroundings.ts";

type Mcp = typeof import("@turnbox/agents/mcp");

/** An environment variable, so that hosts that start the server need no file. */
const TOKEN_VARIABLE = "TURNBOX_MCP_TOKEN";
/** How long a sandbox outlives a server that was killed. */
const LEASE_MS = 24 * 3_600_000;
const MAX_SESSIONS = 100;

interface McpOptions extends ServerOptions {
  readonly sandbox?: string;
  readonly template: string;
  readonly name?: string;
  readonly ttl?: string;
  readonly keep?: boolean;
  readonly autoTurn?: boolean;
  readonly http?: boolean;
  readonly host: string;
  readonly port: string;
  readonly httpTokenFile?: string;
  readonly maxSessions: string;
  readonly idleTimeout: string;
}

export function registerMcp(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("mcp"))
      .summary("serve a sandbox's tools to an MCP host")
      .description(
        "Serve the Model Context Protocol on stdin and stdout, or over HTTP: the tools of a sandbox, and turn, turns, rollback, undo, " +
          "diff, fork, use_sandbox, discard_fork and sandbox_info. Without --sandbox, one is made at the first call and destroyed " +
          "at the end. See docs/MCP.md for the configuration of the usual hosts.",
      )
      .addOption(
        new Option("--sandbox <id>", "use this sandbox, and leave it alone at the end").conflicts(["name", "ttl"]),
      )
      .option("--template <name>", "template, or template@version, of the sandbox that is made", "mini")
      .option("--name <name>", "its name; where there is one of this name already, that is used and left alone")
      .option("--ttl <duration>", "how long it lives at most, like 8h (default: for as long as this runs)")
      .option("--keep", "do not destroy the sandbox, nor its forks, at the end")
      .option(
        "--auto-turn",
        "seal a turn after each call that may have changed files (default: where the model says so)",
      )
      .option("--http", "serve streamable HTTP on a loopback address instead, each session with a sandbox of its own")
      .option("--host <address>", "the address to listen on", "127.0.0.1")
      .option("--port <port>", "the port to listen on; 0 for any that is free", "0")
      .option(
        "--http-token-file <path>",
        `a file with the token that clients send (default: ${TOKEN_VARIABLE}, or a new one)`,
      )
      .option("--max-sessions <number>", "how many sessions there may be at once over HTTP", "8")
      .option("--idle-timeout <duration>", "how long a session over HTTP stays without its client", "30m"),
    [
      ["turnbox mcp", "on stdin and stdout, as a host's configuration has it"],
      ["turnbox mcp --sandbox web", "in a sandbox that is there"],
      ["turnbox mcp --template debian --name work --keep", "in the same one each time"],
      ["turnbox mcp --http --port 7710", "over HTTP; prints the address and the token"],
    ],
  ).action(async (options: McpOptions) => {
    assertCombination(options);
    using turnbox = invocation.turnbox(options);
    const sandboxId = await chosenSandbox(turnbox, options, invocation);
    // What speaks the protocol is loaded by this verb only.
    const mcp = await import("@turnbox/agents/mcp");
    const { choice, ...end } = toSandboxSpec(sandboxId, options);
    const spec: McpSessionSpec = {
      version: invocation.surroundings.version,
      open: mcp.openForMcp(turnbox, choice),
      ...end,
      catalog: async ({ signal }) => {
        const tools = await turnbox.catalog({ signal });
        return tools === undefined ? undefined : [...tools];
      },
      turns: options.autoTurn === true ? "after each call" : "by the model",
      clock: invocation.surroundings.clock,
      onProblem: (message) => {
        void writeTo(invocation.surroundings.stderr, `mcp: ${printable(message)}\n`).catch(() => undefined);
      },
    };
    await (options.http === true ? overHttp(mcp, spec, { options, invocation }) : overStdio(mcp, spec, invocation));
  });
}

/** A time that was asked for is the sandbox's own; without one it is renewed for as long as this runs. */
function toSandboxSpec(sandboxId: string | undefined, { template, name, ttl, keep }: McpOptions) {
  const leased = ttl === undefined && keep !== true ? { leaseMs: LEASE_MS } : {};
  const ttlMs = ttl === undefined ? leased.leaseMs : parseDuration(ttl, "ttl");
  return {
    choice: {
      template,
      ...(sandboxId === undefined ? {} : { sandboxId }),
      ...(name === undefined ? {} : { name }),
      ...(ttlMs === undefined ? {} : { ttlMs }),
    },
    atEnd: keep === true ? ("keep" as const) : ("destroy" as const),
    ...leased,
  };
}

/** A wrong id shall be found out when the host starts the server, not by a model. */
async function chosenSandbox(
  turnbox: Turnbox,
  { sandbox }: McpOptions,
  { signal }: Invocation,
): Promise<string | undefined> {
  return sandbox === undefined ? undefined : (await turnbox.get(sandbox, { signal })).id;
}

function assertCombination({ http, name, keep, host }: McpOptions): void {
  if (http !== true) return;
  if (name !== undefined && keep !== true) {
    throw invalidArgument(
      "name",
      "sessions over HTTP would share it, and the first to end would destroy it: add --keep",
    );
  }
  if (!isLoopback(`http://${host.includes(":") ? `[${host}]` : host}`)) {
    throw invalidArgument("host", `${host} is not this machine; let a proxy with TLS stand before a loopback address`);
  }
}

async function overStdio(mcp: Mcp, spec: McpSessionSpec, { surroundings, signal }: Invocation): Promise<void> {
  const { stdin, stdout, stderr } = surroundings;
  if (stdin.isTTY === true) {
    await writeTo(
      stderr,
      "This speaks MCP on stdin and stdout, and is meant to be started by an MCP host. Ctrl-C ends it.\n",
    );
  }
  await mcp.serveStdio({ ...spec, stdin, stdout, signal });
}

interface HttpCall {
  readonly options: McpOptions;
  readonly invocation: Invocation;
}

async function overHttp(mcp: Mcp, spec: McpSessionSpec, { options, invocation }: HttpCall): Promise<void> {
  const { signal } = invocation;
  const { token, source } = tokenFor(options, invocation);
  await using listener = await mcp.serveHttp({
    ...spec,
    createSession: (sessionId) => mcp.createMcpSession(spec, sessionId),
    host: options.host,
    port: parsePort(options.port, "port"),
    token,
    maxSessions: parseCount(options.maxSessions),
    idleMs: parseDuration(options.idleTimeout, "idle-timeout"),
  });
  const made = source === "made" ? { token: token.reveal() } : {};
  await invocation.output(options).result({
    json: { ready: true, url: listener.url, ...made },
    text: `turnbox mcp ready ${listener.url}\n${made.token === undefined ? "" : `token ${made.token}\n`}`,
  });
  await new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => {
      resolve();
    });
    if (signal.aborted) resolve();
  });
}

function tokenFor({ httpTokenFile }: McpOptions, { surroundings }: Invocation) {
  const given =
    httpTokenFile === undefined ? surroundings.environment.variables[TOKEN_VARIABLE] : readTokenFile(httpTokenFile);
  if (httpTokenFile !== undefined && given === undefined)
    throw invalidArgument("http-token-file", `there is no file ${httpTokenFile}`);
  if (given === undefined || given === "") {
    return { token: new Secret(randomBytes(32).toString("base64url")), source: "made" } as const;
  }
  if (!/^[A-Za-z0-9._~+/-]{16,}=*$/.test(given)) {
    const field = httpTokenFile === undefined ? TOKEN_VARIABLE : "http-token-file";
    throw invalidArgument(field, "must be 16 or more letters, digits and . _ ~ + / -");
  }
  return { token: new Secret(given), source: "given" } as const;
}

function parseCount(raw: string): number {
  const count = /^\d{1,3}$/.test(raw) ? Number(raw) : 0;
  if (count < 1 || count > MAX_SESSIONS)
    throw invalidArgument("max-sessions", `${JSON.stringify(raw)} is not a number from 1 to ${String(MAX_SESSIONS)}`);
  return count;
}
