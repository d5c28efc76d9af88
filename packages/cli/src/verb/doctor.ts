import type { Command } from "commander";
import { examineClient } from "../doctor/client-parts.ts";
import { examineHost, formatConfig } from "../doctor/host-parts.ts";
import { formatParts, isHealthy } from "../doctor/part.ts";
import { EXIT } from "../exit-code.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";

export function registerDoctor(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("doctor"))
      .summary("say what is there, what is missing and how to get it")
      .description(
        "Try every part that Turnbox needs or can use on this machine: what it is, its version, whether it works, what " +
          "you do without, how to get it. Exit code 1 when something required is not there.",
      ),
    [
      ["turnbox doctor", "a report for people"],
      ["turnbox doctor --json", "the same for programs"],
    ],
  ).action(async (options: ServerOptions) => {
    const { surroundings, signal } = invocation;
    const { parts, config } = await whileWorking(
      {
        text: "trying every part",
        options,
        work: async () => {
          const clientParts = await examineClient(options, invocation);
          const host = await examineHost(surroundings, { signal });
          return { parts: [...clientParts, ...host.parts], config: host.config };
        },
      },
      invocation,
    );
    const ok = isHealthy(parts);
    const { home } = surroundings.environment;
    const verdict = ok ? "everything that is required is there" : "something required is not there";
    const output = invocation.output(options);
    await output.result({
      json: { ok, home, version: surroundings.version, parts, config },
      text: `${formatParts(parts, output)}${formatConfig(config)}${output.bold(verdict)}\n`,
    });
    invocation.exitWith(ok ? EXIT.ok : EXIT.failed);
  });
}
