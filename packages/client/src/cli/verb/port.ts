import { randomUUID } from "node:crypto";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { invalidArgument } from "@turnbox/core";
import { parsePort } from "../../config.ts";
import { CALL_MS } from "../deadline.ts";
import { parseDuration } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";
import { toIso } from "../sandbox-view.ts";

interface PortOptions extends ServerOptions {
  readonly ttl?: string;
}

export function registerPort(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("port <id> <port>"))
      .summary("print the address and a token of a port in a sandbox")
      .description(
        "Print where a port of the sandbox is reached from outside, and a token for it, to be sent as a bearer token or in the " +
          "header `turnbox-port-token`. Both end with a rollback.",
      )
      .option("--ttl <duration>", "how long the token lasts (default: until a rollback)"),
    [
      ["turnbox port web 8000", "for reading"],
      ["turnbox port web 8000 --ttl 1h --json", "for a script: url, token, expiresAt"],
    ],
  ).action(async (id: string, raw: string, options: PortOptions) => {
    const port = parsePort(raw, "port");
    if (port === 0) throw invalidArgument("port", "must be from 1 to 65535");
    const ttl = options.ttl === undefined ? {} : { ttl: durationFromMs(parseDuration(options.ttl, "ttl")) };
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const { host, sessionId, sandboxId } = sandbox;
    const access = await host.sessions.createPortAccess(
      { idempotencyKey: randomUUID(), sessionId, port, ...ttl },
      { signal: invocation.signal, timeoutMs: CALL_MS.change },
    );
    const { url, token } = access;
    const expiresAt = toIso(access.expiresAt);
    await invocation.output(options).result({
      json: { sandboxId, port, url, token, expiresAt },
      text: `url: ${url}\ntoken: ${token}\nexpires: ${expiresAt ?? "with a rollback"}\n`,
    });
  });
}
