import { Argument, type Command } from "commander";
import { invalidArgument } from "@turnbox/core";
import type { Invocation } from "../invocation.ts";
import { allow, deny, formatPolicy, type PolicyRules, turnOff } from "../network-policy.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";

const ACTIONS = ["show", "allow", "deny", "off"] as const;
type Action = (typeof ACTIONS)[number];

export function registerNet(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("net <id>"))
      .addArgument(new Argument("[action]", "what to do").choices(ACTIONS).default("show"))
      .argument("[destinations...]", "names (*.example.org for what is below) and CIDR ranges")
      .summary("show or change who a sandbox may talk to")
      .description(
        "Show or change, while it runs, where a sandbox may connect to. `allow` adds destinations, without one it allows every " +
          "public address; `deny` takes destinations away, also from a range or a name that is allowed; `off` allows none.",
      ),
    [
      ["turnbox net web", "the policy and the latest refusals"],
      ["turnbox net web allow pypi.org '*.pythonhosted.org'", "these names, and what was allowed before"],
      ["turnbox net web deny 203.0.113.0/24", "not these addresses"],
      ["turnbox net web off", "nowhere"],
    ],
  ).action(async (id: string, action: Action, destinations: readonly string[], options: ServerOptions) => {
    const change = changeOf(action, destinations);
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const report = await sandbox.network.report({ signal });
    const shown =
      change === undefined
        ? report
        : {
            policy: await sandbox.network.update(change(report.policy), { signal }),
            ineffectiveEntries: [],
            denials: [],
          };
    const { policy, denials, ineffectiveEntries } = shown;
    await invocation.output(options).result({
      json: {
        sandboxId: sandbox.id,
        policy,
        ineffectiveEntries,
        denials: denials.map(({ at, destination, rule }) => ({ at: at.toISOString(), destination, rule })),
      },
      text: formatPolicy(policy, { denials, ineffectiveEntries }),
    });
  });
}

/** Undefined if nothing is to change. */
function changeOf(action: Action, destinations: readonly string[]): ((policy: PolicyRules) => PolicyRules) | undefined {
  if (action === "allow") return (policy) => allow(policy, destinations);
  if (action === "deny") {
    if (destinations.length === 0) throw invalidArgument("destinations", "must name one; `off` denies everything");
    return (policy) => deny(policy, destinations);
  }
  if (destinations.length > 0) throw invalidArgument("destinations", `${action} takes none`);
  return action === "off" ? turnOff : undefined;
}
