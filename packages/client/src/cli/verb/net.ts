import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { Argument, type Command } from "commander";
import { invalidArgument } from "@turnbox/core";
import { Verb } from "@turnbox/protocol/turnbox/common/v1/access_pb";
import { NetworkPolicySchema } from "@turnbox/protocol/turnbox/host/v1/network_pb";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";
import { allow, deny, formatPolicy, type PolicyRules, turnOff } from "../network-policy.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";
import { toIso } from "../sandbox-view.ts";

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
    using server = await invocation.server(options);
    const verbs = change === undefined ? [] : [Verb.READ, Verb.NETWORK];
    using sandbox = await openSandbox(server, id, invocation, verbs);
    const { host, sessionId, sandboxId } = sandbox;
    const present = await host.sessions.getNetworkPolicy({ sessionId }, { signal, timeoutMs: CALL_MS.read });
    let policy: PolicyRules = present.policy ?? create(NetworkPolicySchema);
    if (change !== undefined) {
      const wanted = change(policy);
      const updated = await host.sessions.updateNetworkPolicy(
        { idempotencyKey: randomUUID(), sessionId, policy: toMessage(wanted) },
        { signal, timeoutMs: CALL_MS.change },
      );
      policy = updated.policy ?? wanted;
    }
    const { denials, ineffectiveEntries } = change === undefined ? present : { denials: [], ineffectiveEntries: [] };
    await invocation.output(options).result({
      json: {
        sandboxId,
        policy: toMessage(policy),
        ineffectiveEntries,
        denials: denials.map(({ at, destination, rule }) => ({ at: toIso(at), destination, rule })),
      },
      text: formatPolicy(policy, { denials, ineffectiveEntries }),
    });
  });
}

/** Undefined where nothing is to change. */
function changeOf(action: Action, destinations: readonly string[]): ((policy: PolicyRules) => PolicyRules) | undefined {
  if (action === "allow") return (policy) => allow(policy, destinations);
  if (action === "deny") {
    if (destinations.length === 0) throw invalidArgument("destinations", "must name one; `off` denies everything");
    return (policy) => deny(policy, destinations);
  }
  if (destinations.length > 0) throw invalidArgument("destinations", `${action} takes none`);
  return action === "off" ? turnOff : undefined;
}

const toMessage = ({ allowPublicIngress, allowOutbound, allowList, denyList, required }: PolicyRules) => ({
  allowPublicIngress,
  allowOutbound,
  allowList: [...allowList],
  denyList: [...denyList],
  required,
});
