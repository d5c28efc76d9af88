import type { Command } from "commander";
import type { Instance } from "@turnbox/client";
import { invalidArgument, SandboxError } from "@turnbox/core";
import { toInstanceView } from "../fleet/instance-view.ts";
import { parseDuration } from "../format/duration.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { resolveInstance } from "../resolve/resolve-instance.ts";

interface DrainOptions extends ServerOptions {
  readonly timeout?: string;
  readonly discard?: boolean;
  readonly yes?: boolean;
}

export function registerFleetDrain(fleet: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(fleet.command("drain <instance>"))
      .summary("empty an instance")
      .description(
        "Empty an instance: no new sandboxes, those that it has may end until the timeout and are paused then. Where some are " +
          "left, the instance is stopped with them if its maker can, and starts again on first use; otherwise it stays draining.",
      )
      .option("--timeout <duration>", "how long sandboxes may go on (default: the fleet's drain timeout)")
      .option("--discard", "end the instance with the sandboxes that are left: they are LOST")
      .option("--yes", "do not ask"),
    [
      ["turnbox fleet drain local-2", "with the fleet's timeout"],
      ["turnbox fleet drain local-2 --timeout 10m", "in ten minutes"],
      ["turnbox fleet drain local-2 --discard --yes", "whatever is on it goes with it"],
    ],
  ).action(async (reference: string, options: DrainOptions) => {
    const { signal } = invocation;
    const grace = options.timeout === undefined ? {} : { graceMs: parseDuration(options.timeout, "timeout") };
    using turnbox = invocation.turnbox(options);
    const found = await resolveInstance(turnbox.fleet, reference, { signal });
    if (options.discard === true && options.yes !== true) await confirm(found, invocation);
    const sandboxes = options.discard === true ? "discard" : "keep";
    const instance = await turnbox.fleet.drain(found.id, { sandboxes, ...grace, signal });
    const output = invocation.output(options);
    await output.result({ json: toInstanceView(instance), text: `draining ${found.id}\n` });
    await output.note("`turnbox fleet watch` shows how it goes; `turnbox fleet uncordon` takes it back");
  });
}

async function confirm({ id, sandboxCount, health }: Instance, invocation: Invocation): Promise<void> {
  const { ask } = invocation.surroundings;
  if (ask === undefined) throw invalidArgument("yes", "without a terminal to ask at, --discard needs --yes");
  const many = `${String(sandboxCount)} ${sandboxCount === 1 ? "sandbox" : "sandboxes"}`;
  const held = health === "unknown" ? `${many} when it last answered` : many;
  await invocation
    .output({})
    .note(`${id} has ${held}. What is left at the end of the drain is lost, files and snapshots too.`);
  const answer = await ask("Type yes to go on: ", { signal: invocation.signal });
  if (answer.trim() !== "yes") throw new SandboxError("CANCELLED", "nothing was drained");
}
