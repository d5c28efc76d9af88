import type { Command } from "commander";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { printable } from "../printable.ts";
import { whileWorking } from "../progress/while-working.ts";

export function registerRepair(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("repair <id>"))
      .summary("bring a failed sandbox back")
      .description(
        "Bring a failed sandbox back to active where its files allow it, and say what was done. One that is well stays as it is.",
      ),
    [["turnbox repair web", "bring it back"]],
  ).action(async (id: string, options: ServerOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const { state, generation, actions } = await whileWorking(
      {
        text: "repairing",
        options,
        work: () => sandbox.repair({ signal }),
      },
      invocation,
    );
    const { id: sandboxId } = sandbox;
    const done = actions.length === 0 ? ["there was nothing to do"] : actions.map(printable);
    await invocation.output(options).result({
      json: { sandboxId, state, generation, actions },
      text: `${sandboxId} is ${state}\n${done.map((action) => `  ${action}\n`).join("")}`,
    });
  });
}
