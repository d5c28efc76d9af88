import { randomUUID } from "node:crypto";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import { OnTimeout } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { CALL_MS } from "../deadline.ts";
import { parseDuration } from "../format/duration.ts";
import { parseSize } from "../format/size.ts";
import type { Invocation } from "../invocation.ts";
import { collect, parsePairs, type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";
import { toSandboxView } from "../sandbox-view.ts";

const ON_TIMEOUT = { pause: OnTimeout.PAUSE, destroy: OnTimeout.DESTROY } as const;

interface CreateOptions extends ServerOptions {
  readonly template: string;
  readonly name?: string;
  readonly label?: readonly string[];
  readonly env?: readonly string[];
  readonly quota?: string;
  readonly ttl?: string;
  readonly idleTimeout?: string;
  readonly onTimeout?: keyof typeof ON_TIMEOUT;
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
        new Option("--on-timeout <what>", "what happens when its time is over (default: destroy)").choices(
          Object.keys(ON_TIMEOUT),
        ),
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
  ).action(async (options: CreateOptions) => {
    const request = {
      idempotencyKey: randomUUID(),
      template: options.template,
      name: options.name ?? "",
      labels: parsePairs(options.label, "label"),
      env: parsePairs(options.env, "env"),
      quotaBytes: options.quota === undefined ? 0n : BigInt(parseSize(options.quota, "quota")),
      ...toLifetime(options),
      ...toNetworkPolicy(options),
    };
    using server = await invocation.server(options);
    const { sandboxId, sandbox } = await whileWorking(
      {
        text: "making a sandbox",
        options,
        work: () =>
          server.sandboxes.createSandbox(request, {
            signal: invocation.signal,
            timeoutMs: CALL_MS.change,
          }),
      },
      invocation,
    );
    await invocation.output(options).result({
      json: { ...(sandbox === undefined ? {} : toSandboxView(sandbox)), sandboxId },
      text: `${sandboxId}\n`,
    });
  });
}

function toLifetime({ ttl, idleTimeout, onTimeout }: CreateOptions) {
  return {
    ...(ttl === undefined ? {} : { ttl: durationFromMs(parseDuration(ttl, "ttl")) }),
    ...(idleTimeout === undefined ? {} : { idleTimeout: durationFromMs(parseDuration(idleTimeout, "idle-timeout")) }),
    ...(onTimeout === undefined ? {} : { onTimeout: ON_TIMEOUT[onTimeout] }),
  };
}

/** An option without a value stands for everything, whatever else is listed. */
function collectDestinations(value: string, previous: CreateOptions["allowNet"]): true | readonly string[] {
  return previous === true ? true : collect(value, previous);
}

/** What cannot be enforced shall fail. */
function toNetworkPolicy({ allowNet }: CreateOptions) {
  if (allowNet === undefined) return {};
  const allowList = allowNet === true ? [] : [...allowNet];
  return { networkPolicy: { allowOutbound: true, allowList, required: true } };
}
