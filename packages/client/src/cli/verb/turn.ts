import { type Command, Option } from "commander";
import { TurnOutcome } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";

const OUTCOMES = { succeeded: TurnOutcome.SUCCEEDED, failed: TurnOutcome.FAILED } as const;

interface TurnOptions extends ServerOptions {
  readonly key?: string;
  readonly outcome: keyof typeof OUTCOMES;
}

export function registerTurn(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("turn <id>"))
      .summary("seal a turn with a snapshot")
      .description("Seal the present files of a sandbox as a turn.")
      .option("--key <key>", "your name for the turn; the same key twice is one turn")
      .addOption(
        new Option("--outcome <outcome>", "how the turn went").choices(Object.keys(OUTCOMES)).default("succeeded"),
      ),
    [
      ["turnbox turn web", "seal a turn"],
      ["turnbox turn web --key step-7 --outcome failed", "seal a failed turn, under a key"],
    ],
  ).action(async (id: string, options: TurnOptions) => {
    const { signal } = invocation;
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const turn = await whileWorking(
      {
        text: "sealing the turn",
        options,
        work: () =>
          sandbox.host.snapshots.turnComplete(
            { sessionId: sandbox.sessionId, turnKey: options.key ?? "", outcome: OUTCOMES[options.outcome] },
            { signal, timeoutMs: CALL_MS.change },
          ),
      },
      invocation,
    );
    const { snapshotId, turnNumber, unchanged, generation } = turn;
    await invocation.output(options).result({
      json: {
        sandboxId: sandbox.sandboxId,
        snapshotId,
        turnNumber,
        unchanged,
        generation,
        spaceUsedBytes: Number(turn.spaceUsedBytes),
      },
      text: `#${String(turnNumber)} ${snapshotId}${unchanged ? " (nothing changed since)" : ""}\n`,
    });
  });
}
