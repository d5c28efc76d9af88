import { randomUUID } from "node:crypto";
import { type Command, Option } from "commander";
import { ToolsPolicy } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";

const TOOLS = { wait: ToolsPolicy.WAIT, refuse: ToolsPolicy.REFUSE, kill: ToolsPolicy.KILL } as const;

interface PauseOptions extends ServerOptions {
  readonly tools: keyof typeof TOOLS;
}

export function registerPause(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("pause <id>"))
      .summary("freeze a sandbox")
      .description("Refuse new tools, wait for running ones, then freeze the sandbox's processes. Files stay.")
      .addOption(
        new Option("--tools <policy>", "running tools: wait for them, refuse, or kill those that take too long")
          .choices(Object.keys(TOOLS))
          .default("wait"),
      ),
    [["turnbox pause web", "freeze it; `turnbox resume web` goes on"]],
  ).action(async (id: string, options: PauseOptions) => {
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    await whileWorking(
      {
        text: "freezing",
        options,
        work: () =>
          sandbox.host.sessions.pauseSession(
            { idempotencyKey: randomUUID(), sessionId: sandbox.sessionId, tools: TOOLS[options.tools] },
            { signal: invocation.signal, timeoutMs: CALL_MS.change },
          ),
      },
      invocation,
    );
    await invocation.output(options).result({
      json: { sandboxId: sandbox.sandboxId, state: "paused" },
      text: `paused ${sandbox.sandboxId}\n`,
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
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    await whileWorking(
      {
        text: "thawing",
        options,
        work: () =>
          sandbox.host.sessions.resumeSession(
            { idempotencyKey: randomUUID(), sessionId: sandbox.sessionId },
            { signal: invocation.signal, timeoutMs: CALL_MS.change },
          ),
      },
      invocation,
    );
    await invocation.output(options).result({
      json: { sandboxId: sandbox.sandboxId, state: "active" },
      text: `resumed ${sandbox.sandboxId}\n`,
    });
  });
}
