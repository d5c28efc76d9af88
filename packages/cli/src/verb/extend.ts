import { type Command, Option } from "commander";
import { invalidArgument } from "@turnbox/core";
import { parseDuration } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { toIsoDate } from "../sandbox-view.ts";

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
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const info = await sandbox.extend(ttl, { signal });
    const expiresAt = toIsoDate(info.expiresAt);
    await invocation.output(options).result({
      json: { sandboxId: sandbox.id, expiresAt },
      text: `${sandbox.id} ${expiresAt === null ? "has no end" : `ends at ${expiresAt}`}\n`,
    });
  });
}

/** Removing the end is nothing that is asked for by forgetting an option. */
function toTtl({ ttl, none }: ExtendOptions): number | "none" {
  if (ttl !== undefined) return parseDuration(ttl, "ttl");
  if (none === true) return "none";
  throw invalidArgument("ttl", "must be given, or --none to remove the end");
}
