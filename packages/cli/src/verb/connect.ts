import type { Command } from "commander";
import { parseDuration } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { toIsoDate } from "../sandbox-view.ts";

interface ConnectVerbOptions extends ServerOptions {
  readonly ttl?: string;
}

export function registerConnect(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("connect <id>"))
      .summary("print the address and a token of a sandbox's host")
      .description("Print where a sandbox's host is and a token for this sandbox, to talk to it directly.")
      .option("--ttl <duration>", "how long the token lasts, at most 24h (default: 1h)"),
    [
      ["turnbox connect web", "for reading"],
      ["turnbox connect web --json", "for a script: url, token, sessionId, expiresAt"],
    ],
  ).action(async (id: string, options: ConnectVerbOptions) => {
    const ttl = options.ttl === undefined ? {} : { ttlMs: parseDuration(options.ttl, "ttl") };
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const access = await sandbox.access({ ...ttl, signal });
    const { url, token, sessionId } = access;
    const expiresAt = toIsoDate(access.expiresAt);
    await invocation.output(options).result({
      json: { sandboxId: sandbox.id, sessionId, url, token, expiresAt },
      text: `url: ${url}\ntoken: ${token}\nsession: ${sessionId}\nexpires: ${expiresAt ?? "never"}\n`,
    });
  });
}
