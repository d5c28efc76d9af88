import type { Command } from "commander";
import type { ProcessInfo } from "@turnbox/client";
import { formatAge } from "../format/duration.ts";
import { formatSize } from "../format/size.ts";
import { formatTable } from "../format/table.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { tableLook } from "../output.ts";
import { hasEnded, toProcessView } from "../process/process-view.ts";
import { quoteCommand } from "../quote.ts";

export function registerPs(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("ps <id>"))
      .summary("list the processes that were launched in a sandbox")
      .description("List the processes that `run` and `shell` have launched since the last rollback, also ended ones."),
    [
      ["turnbox ps web", "for reading"],
      ["turnbox ps web --json", "for a script"],
    ],
  ).action(async (id: string, options: ServerOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const processes = await sandbox.processes.list({ signal });
    const nowMs = invocation.surroundings.clock.nowMs();
    const output = invocation.output(options);
    await output.result({
      json: { sandboxId: sandbox.id, processes: processes.map(toProcessView) },
      text: formatTable(
        ["PROC", "STATE", "AGE", "OUTPUT", "ADDRESS", "COMMAND"],
        processes.map((process) => toRow(process, nowMs)),
        { ...tableLook(output), lastCell: "cut", colors: { running: "green" } },
      ),
    });
  });
}

function toRow(process: ProcessInfo, nowMs: number): readonly string[] {
  const { id, startedAt, outputBytes, address, binary, args } = process;
  return [
    id,
    describeState(process),
    formatAge(nowMs - startedAt.getTime()),
    formatSize(outputBytes),
    address ?? "-",
    [binary, ...args].map(showWord).join(" "),
  ];
}

/** Quoted only if a shell would take it for something else. */
const showWord = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : quoteCommand([word]));

function describeState(process: ProcessInfo): string {
  if (!hasEnded(process)) return process.state;
  const { exitCode, exitSignal, exitReason } = toProcessView(process);
  if (exitCode !== null) return `exited ${String(exitCode)}`;
  return exitSignal === null ? (exitReason ?? "exited") : `signal ${String(exitSignal)}`;
}
