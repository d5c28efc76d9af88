import { type Command, Option } from "commander";
import type { CreateOptions } from "@turnbox/client";
import { parseDuration } from "../format/duration.ts";
import { parseSize } from "../format/size.ts";
import type { Invocation } from "../invocation.ts";
import { collect, parsePairs, type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";
import { toMadeView } from "../sandbox-view.ts";

const ON_TIMEOUT = ["pause", "destroy"] as const;

interface CreateVerbOptions extends ServerOptions {
  readonly template: string;
  readonly name?: string;
  readonly label?: readonly string[];
  readonly env?: readonly string[];
  readonly quota?: string;
  readonly ttl?: string;
  readonly idleTimeout?: string;
  readonly onTimeout?: (typeof ON_TIMEOUT)[number];
  /** True: every public address. */
  readonly allowNet?: true | readonly string[];
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
      .option("--quota <size>", "how much it may write on top of the template, like 2GiB")
      .option("--ttl <duration>", "how long it lives, like 2h (default: without end)")
      .option("--idle-timeout <duration>", "how long it may be idle, like 30m (default: without end)")
      .addOption(
        new Option("--on-timeout <what>", "what happens when its time is over (default: destroy)").choices(ON_TIMEOUT),
      )
      .option(
        "--allow-net [destination]",
        "let it connect to this name (*.example.org for what is below) or CIDR range, without one to every public " +
          "address; may be given several times (default: nowhere)",
        collectDestinations,
      ),
    [
      ["turnbox create", "a sandbox from the template mini"],
      ["turnbox create --template debian --name web", "another template, and a name to call it by"],
      ["turnbox create --label app=web --quota 2GiB", "with a label and a quota"],
      ["turnbox create --ttl 8h --idle-timeout 30m --on-timeout pause", "frozen when it is not used, or after 8 hours"],
      ["turnbox create --allow-net pypi.org --allow-net '*.pythonhosted.org'", "with a way out, to these names only"],
    ],
  ).action(async (options: CreateVerbOptions) => {
    const { signal } = invocation;
    const wanted: CreateOptions = {
      template: options.template,
      ...(options.name === undefined ? {} : { name: options.name }),
      labels: parsePairs(options.label, "label"),
      env: parsePairs(options.env, "env"),
      ...(options.quota === undefined ? {} : { quotaBytes: parseSize(options.quota, "quota") }),
      ...toLifetime(options),
      ...toNetworkPolicy(options),
    };
    using turnbox = invocation.turnbox(options);
    const work = async () => (await turnbox.create({ ...wanted, signal })).keep();
    const sandbox = await whileWorking({ text: "making a sandbox", options, work }, invocation);
    await invocation.output(options).result({ json: toMadeView(sandbox), text: `${sandbox.id}\n` });
  });
}

function toLifetime({ ttl, idleTimeout, onTimeout }: CreateVerbOptions) {
  return {
    ...(ttl === undefined ? {} : { ttlMs: parseDuration(ttl, "ttl") }),
    ...(idleTimeout === undefined ? {} : { idleTimeoutMs: parseDuration(idleTimeout, "idle-timeout") }),
    ...(onTimeout === undefined ? {} : { onTimeout }),
  };
}

/** An option without a value stands for everything, whatever else is listed. */
function collectDestinations(value: string, previous: CreateVerbOptions["allowNet"]): true | readonly string[] {
  return previous === true ? true : collect(value, previous);
}

/** What cannot be enforced shall fail. */
function toNetworkPolicy({ allowNet }: CreateVerbOptions) {
  if (allowNet === undefined) return {};
  const allowList = allowNet === true ? [] : [...allowNet];
  return { network: { allowOutbound: true, allowList, required: true } };
}
