import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { CALL_MS } from "../deadline.ts";
import { parseSize } from "../format/size.ts";
import type { Invocation } from "../invocation.ts";
import { collect, parsePairs, type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { toSandboxView } from "../sandbox-view.ts";

interface CreateOptions extends ServerOptions {
  readonly template: string;
  readonly name?: string;
  readonly label?: readonly string[];
  readonly env?: readonly string[];
  readonly quota?: string;
}

export function registerCreate(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("create"))
      .summary("make a sandbox")
      .description("Make a sandbox and print its id.")
      .option("--template <name>", "template, or template@version, to start from", "mini")
      .option("--name <name>", "a name, unique among your sandboxes")
      .option("--label <key=value>", "a label; may be given several times", collect)
      .option("--env <key=value>", "a variable for every command in it; may be given several times", collect)
      .option("--quota <size>", "how much it may write on top of the template, like 2GiB"),
    [
      ["turnbox create", "a sandbox from the template mini"],
      ["turnbox create --template debian --name web", "another template, and a name to call it by"],
      ["turnbox create --label app=web --quota 2GiB", "with a label and a quota"],
    ],
  ).action(async (options: CreateOptions) => {
    const request = {
      idempotencyKey: randomUUID(),
      template: options.template,
      name: options.name ?? "",
      labels: parsePairs(options.label, "label"),
      env: parsePairs(options.env, "env"),
      quotaBytes: options.quota === undefined ? 0n : BigInt(parseSize(options.quota, "quota")),
    };
    using server = await invocation.server(options);
    const { sandboxId, sandbox } = await server.sandboxes.createSandbox(request, {
      signal: invocation.signal,
      timeoutMs: CALL_MS.change,
    });
    await invocation.output(options).result({
      json: { ...(sandbox === undefined ? {} : toSandboxView(sandbox)), sandboxId },
      text: `${sandboxId}\n`,
    });
  });
}
