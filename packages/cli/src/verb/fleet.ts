import type { Command } from "commander";
import { formatInstances, toInstanceView } from "../fleet/instance-view.ts";
import { showFleet } from "../fleet/show-fleet.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { tableLook } from "../output.ts";
import { resolveInstance } from "../resolve/resolve-instance.ts";
import { registerFleetDrain } from "./fleet-drain.ts";

export function registerFleet(program: Command, invocation: Invocation): void {
  const fleet = program
    .command("fleet")
    .summary("show and change the machines behind the sandboxes")
    .description("The instances behind the sandboxes. INSTANCE is an instance's id, or a unique prefix of it.");
  registerFleetStatus(fleet, invocation);
  registerFleetLs(fleet, invocation);
  registerFleetCordon(fleet, invocation);
  registerFleetUncordon(fleet, invocation);
  registerFleetDrain(fleet, invocation);
  registerFleetRefresh(fleet, invocation);
  registerFleetWatch(fleet, invocation);
}

function registerFleetStatus(fleet: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(fleet.command("status"))
      .summary("show the fleet in numbers")
      .description("Show how many instances and sandboxes there are, and how many creates wait for room."),
    [["turnbox fleet status", "instances by state, sandboxes, waiting creates"]],
  ).action(async (options: ServerOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const { fleetId, version, instances, sandboxCount, waitingCreates } = await turnbox.fleet.status({ signal });
    const total = Object.values(instances).reduce((sum, count) => sum + count, 0);
    const states = Object.entries(instances).map(([state, count]) => `${String(count)} ${state}`);
    await invocation.output(options).result({
      json: { fleetId, version, instances, sessionCount: sandboxCount, waitingCreates },
      text:
        `fleet            ${fleetId} (version ${version})\n` +
        `instances        ${String(total)}${states.length === 0 ? "" : ` (${states.join(", ")})`}\n` +
        `sandboxes        ${String(sandboxCount)}\n` +
        `waiting creates  ${String(waitingCreates)}\n`,
    });
  });
}

function registerFleetLs(fleet: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(fleet.command("ls")).summary("list instances").description("List the instances of the fleet."),
    [
      ["turnbox fleet ls", "all of them"],
      ["turnbox fleet ls --json", "as {instances: [...]}"],
    ],
  ).action(async (options: ServerOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const instances = (await turnbox.fleet.instances({ signal })).map(toInstanceView);
    const output = invocation.output(options);
    await output.result({
      json: { instances },
      text: formatInstances(instances, invocation.surroundings.clock.nowMs(), tableLook(output)),
    });
  });
}

function registerFleetWatch(fleet: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(fleet.command("watch"))
      .summary("show what becomes of the instances")
      .description(
        "Show the instances until Ctrl-C: a table that stays true; where stdout is no terminal, a line per event.",
      ),
    [
      ["turnbox fleet watch", "a live table"],
      ["turnbox fleet watch --json", "an object on each line"],
    ],
  ).action(async (options: ServerOptions) => {
    using turnbox = invocation.turnbox(options);
    await showFleet(turnbox.fleet, invocation.output(options), invocation);
  });
}

function registerFleetCordon(fleet: Command, invocation: Invocation): void {
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

function registerFleetUncordon(fleet: Command, invocation: Invocation): void {
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

interface RefreshOptions extends ServerOptions {
  readonly image?: string;
}

function registerFleetRefresh(fleet: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(fleet.command("refresh"))
      .summary("replace instances of an old image")
      .description(
        "Replace instances of an old image one by one. Those whose sandboxes would be lost are skipped and named.",
      )
      .option("--image <image>", "the image that instances should have (default: the configured one)"),
    [
      ["turnbox fleet refresh", "to the configured image"],
      ["turnbox fleet refresh --image ami-0123", "to another one"],
    ],
  ).action(async ({ image, ...options }: RefreshOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const wanted = image === undefined ? {} : { image };
    const { replacing, skipped } = await turnbox.fleet.refresh({ ...wanted, signal });
    const output = invocation.output(options);
    await output.result({
      json: { replacing, skipped },
      text: replacing.length === 0 ? "there is nothing to replace\n" : `replacing ${replacing.join(", ")}\n`,
    });
    if (skipped.length > 0) await output.note(`skipped, they hold sandboxes that would be lost: ${skipped.join(", ")}`);
  });
}
