import type { Command } from "commander";
import { CALL_MS } from "../deadline.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { hasEnded, toProcessView } from "../process/process-view.ts";
import { PROCESS_RULE, resolveProcess } from "../process/resolve-process.ts";
import { parseSignal } from "../process/signal-number.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";

interface KillOptions extends ServerOptions {
  readonly signal: string;
}

export function registerKill(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("kill <id> <proc>"))
      .summary("send a signal to a process")
      .description(`Send a signal to a process. One that has ended is left alone. ${PROCESS_RULE}`)
      .option("-s, --signal <signal>", "the signal's name or number", "TERM"),
    [
      ["turnbox kill web 3f", "ask it to end"],
      ["turnbox kill web 3f -s KILL", "end it"],
    ],
  ).action(async (id: string, proc: string, options: KillOptions) => {
    const number = parseSignal(options.signal);
    const { signal } = invocation;
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const { host, sessionId, sandboxId } = sandbox;
    const found = await resolveProcess(sandbox, proc, { signal });
    const { processId } = found;
    const { process = found } = await host.processes.killProcess(
      { sessionId, processId, signal: number },
      { signal, timeoutMs: CALL_MS.change },
    );
    await invocation.output(options).result({
      json: { sandboxId, signal: number, process: toProcessView(process) },
      text: hasEnded(found) ? `${processId} has ended before\n` : `sent signal ${String(number)} to ${processId}\n`,
    });
  });
}
