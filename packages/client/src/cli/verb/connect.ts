import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { CALL_MS } from "../deadline.ts";
import { parseDuration } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { resolveSandbox } from "../resolve/resolve-sandbox.ts";
import { toIso } from "../sandbox-view.ts";

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
    const ttl = options.ttl === undefined ? {} : { ttl: durationFromMs(parseDuration(options.ttl, "ttl")) };
    const { signal } = invocation;
    using server = await invocation.server(options);
    const sandboxId = await resolveSandbox(server, id, { signal });
    const access = await server.sandboxes.connectSandbox({ sandboxId, ...ttl }, { signal, timeoutMs: CALL_MS.read });
    const { url, token, sessionId } = access;
    const expiresAt = toIso(access.expiresAt);
    await invocation.output(options).result({
      json: { sandboxId, sessionId, url, token, expiresAt },
      text: `url: ${url}\ntoken: ${token}\nsession: ${sessionId}\nexpires: ${expiresAt ?? "never"}\n`,
    });
  });
}
