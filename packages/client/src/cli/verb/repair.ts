import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { SessionState } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { printable } from "../printable.ts";
import { whileWorking } from "../progress/while-working.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";
import { enumWord } from "../sandbox-view.ts";

export function registerRepair(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("repair <id>"))
      .summary("bring a failed sandbox back")
      .description(
        "Bring a failed sandbox back to active where its files allow it, and say what was done. One that is well stays as it is.",
      ),
    [["turnbox repair web", "bring it back"]],
  ).action(async (id: string, options: ServerOptions) => {
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const { session, actions } = await whileWorking(
      {
        text: "repairing",
        options,
        work: () =>
          sandbox.host.sessions.repairSession(
            { idempotencyKey: randomUUID(), sessionId: sandbox.sessionId },
            { signal: invocation.signal, timeoutMs: CALL_MS.change },
          ),
      },
      invocation,
    );
    const state = enumWord(SessionState[session?.state ?? SessionState.UNSPECIFIED]);
    const { sandboxId } = sandbox;
    const done = actions.length === 0 ? ["there was nothing to do"] : actions.map(printable);
    await invocation.output(options).result({
      json: { sandboxId, state, generation: session?.generation ?? 0, actions },
      text: `${sandboxId} is ${state}\n${done.map((action) => `  ${action}\n`).join("")}`,
    });
  });
}
