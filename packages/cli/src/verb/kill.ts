import type { Command } from "commander";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { hasEnded, toProcessView } from "../process/process-view.ts";
import { PROCESS_RULE, resolveProcess } from "../process/resolve-process.ts";
import { parseSignal } from "../process/signal-number.ts";

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
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const found = await resolveProcess(sandbox, proc, { signal });
    const process = await found.kill(number, { signal });
    await invocation.output(options).result({
      json: { sandboxId: sandbox.id, signal: number, process: toProcessView(process) },
      text: hasEnded(found.known) ? `${found.id} has ended before\n` : `sent signal ${String(number)} to ${found.id}\n`,
    });
  });
}
