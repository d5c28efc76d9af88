import type { Command } from "commander";
import { invalidArgument } from "@turnbox/core";
import { parsePort } from "@turnbox/client/internal";
import { parseDuration } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { toIsoDate } from "../sandbox-view.ts";

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
    const ttl = options.ttl === undefined ? {} : { ttlMs: parseDuration(options.ttl, "ttl") };
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const access = await sandbox.url(port, { ...ttl, signal });
    const { url, token } = access;
    const expiresAt = toIsoDate(access.expiresAt);
    await invocation.output(options).result({
      json: { sandboxId: sandbox.id, port, url, token, expiresAt },
      text: `url: ${url}\ntoken: ${token}\nexpires: ${expiresAt ?? "with a rollback"}\n`,
    });
  });
}
