import { type Command, Option } from "commander";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";

const OUTCOMES = ["succeeded", "failed"] as const;

interface TurnOptions extends ServerOptions {
  readonly key?: string;
  readonly outcome: (typeof OUTCOMES)[number];
}

export function registerTurn(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("turn <id>"))
      .summary("seal a turn with a snapshot")
      .description("Seal the present files of a sandbox as a turn.")
      .option("--key <key>", "your name for the turn; the same key twice is one turn")
      .addOption(new Option("--outcome <outcome>", "how the turn went").choices(OUTCOMES).default("succeeded")),
    [
      ["turnbox turn web", "seal a turn"],
      ["turnbox turn web --key step-7 --outcome failed", "seal a failed turn, under a key"],
    ],
  ).action(async (id: string, options: TurnOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const turn = await whileWorking(
      {
        text: "sealing the turn",
        options,
        work: () => sandbox.turn({ ...toKey(options), outcome: options.outcome, signal }),
      },
      invocation,
    );
    const { number: turnNumber, snapshotId = "", unchanged, generation, spaceUsedBytes } = turn;
    await invocation.output(options).result({
      json: { sandboxId: sandbox.id, snapshotId, turnNumber, unchanged, generation, spaceUsedBytes },
      text: `#${String(turnNumber)} ${snapshotId}${unchanged ? " (nothing changed since)" : ""}\n`,
    });
  });
}

/** An empty key is none. */
const toKey = ({ key = "" }: TurnOptions) => (key === "" ? {} : { key });
