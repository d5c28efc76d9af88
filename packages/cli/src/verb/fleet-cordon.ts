import type { Command } from "commander";
import { toInstanceView } from "../fleet/instance-view.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { resolveInstance } from "../resolve/resolve-instance.ts";

export function registerFleetCordon(fleet: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(fleet.command("cordon <instance>"))
      .summary("keep new sandboxes off an instance")
      .description("Keep new sandboxes off an instance. Those that it has go on."),
    [["turnbox fleet cordon local-2", "no new sandboxes there"]],
  ).action(async (reference: string, options: ServerOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const { id } = await resolveInstance(turnbox.fleet, reference, { signal });
    const instance = await turnbox.fleet.cordon(id, { signal });
    await invocation.output(options).result({ json: toInstanceView(instance), text: `cordoned ${id}\n` });
  });
}

export function registerFleetUncordon(fleet: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(fleet.command("uncordon <instance>"))
      .summary("let new sandboxes on an instance again")
      .description("Let new sandboxes on an instance again. Ends a drain too, unless the instance is on its way out."),
    [["turnbox fleet uncordon local-2", "as before the cordon or the drain"]],
  ).action(async (reference: string, options: ServerOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const { id } = await resolveInstance(turnbox.fleet, reference, { signal });
    const instance = await turnbox.fleet.uncordon(id, { signal });
    await invocation.output(options).result({ json: toInstanceView(instance), text: `uncordoned ${id}\n` });
  });
}
