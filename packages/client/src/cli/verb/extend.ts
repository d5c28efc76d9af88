import { randomUUID } from "node:crypto";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import { invalidArgument } from "@turnbox/core";
import { CALL_MS } from "../deadline.ts";
import { parseDuration } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";
import { toIso } from "../sandbox-view.ts";

interface ExtendOptions extends ServerOptions {
  readonly ttl?: string;
  readonly none?: boolean;
}

export function registerExtend(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("extend <id>"))
      .summary("move a sandbox's end")
      .description(
        "Say how long a sandbox lives from now on, or that it has no end. One of --ttl and --none is needed.",
      )
      .option("--ttl <duration>", "how long it lives from now on, like 2h")
      .addOption(new Option("--none", "remove its end").conflicts("ttl")),
    [
      ["turnbox extend web --ttl 2h", "two hours from now"],
      ["turnbox extend web --none", "without end"],
    ],
  ).action(async (id: string, options: ExtendOptions) => {
    const ttl = toTtl(options);
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const { session } = await sandbox.host.sessions.extendSession(
      { idempotencyKey: randomUUID(), sessionId: sandbox.sessionId, ...ttl },
      { signal: invocation.signal, timeoutMs: CALL_MS.change },
    );
    const expiresAt = toIso(session?.expiresAt);
    await invocation.output(options).result({
      json: { sandboxId: sandbox.sandboxId, expiresAt },
      text: `${sandbox.sandboxId} ${expiresAt === null ? "has no end" : `ends at ${expiresAt}`}\n`,
    });
  });
}

/** Without a `ttl` the request removes the end, which nobody shall ask for by forgetting an option. */
function toTtl({ ttl, none }: ExtendOptions) {
  if (ttl !== undefined) return { ttl: durationFromMs(parseDuration(ttl, "ttl")) };
  if (none === true) return {};
  throw invalidArgument("ttl", "must be given, or --none to remove the end");
}
