import { type Command, Option } from "commander";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";

const TOOLS = ["wait", "refuse", "kill"] as const;

interface PauseOptions extends ServerOptions {
  readonly tools: (typeof TOOLS)[number];
}

export function registerPause(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("pause <id>"))
      .summary("freeze a sandbox")
      .description("Refuse new tools, wait for running ones, then freeze the sandbox's processes. Files stay.")
      .addOption(
        new Option("--tools <policy>", "running tools: wait for them, refuse, or kill those that take too long")
          .choices(TOOLS)
          .default("wait"),
      ),
    [["turnbox pause web", "freeze it; `turnbox resume web` goes on"]],
  ).action(async (id: string, options: PauseOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    await whileWorking(
      {
        text: "freezing",
        options,
        work: () => sandbox.pause({ tools: options.tools, signal }),
      },
      invocation,
    );
    await invocation.output(options).result({
      json: { sandboxId: sandbox.id, state: "paused" },
      text: `paused ${sandbox.id}\n`,
    });
  });
}

export function registerResume(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("resume <id>"))
      .summary("let a frozen sandbox go on")
      .description("Thaw a paused sandbox; its processes go on where they were."),
    [["turnbox resume web", "let it go on"]],
  ).action(async (id: string, options: ServerOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    await whileWorking(
      {
        text: "thawing",
        options,
        work: () => sandbox.resume({ signal }),
      },
      invocation,
    );
    await invocation.output(options).result({
      json: { sandboxId: sandbox.id, state: "active" },
      text: `resumed ${sandbox.id}\n`,
    });
  });
}
