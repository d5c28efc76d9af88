import { type Process, ProcessState } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { formatAge } from "../format/duration.ts";
import { formatSize } from "../format/size.ts";
import { formatTable } from "../format/table.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { tableLook } from "../output.ts";
import { hasEnded, toProcessView } from "../process/process-view.ts";
import { listProcesses } from "../process/resolve-process.ts";
import { quoteCommand } from "../quote.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";

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
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const processes = await listProcesses(sandbox, invocation);
    const nowMs = invocation.surroundings.clock.nowMs();
    const output = invocation.output(options);
    await output.result({
      json: { sandboxId: sandbox.sandboxId, processes: processes.map(toProcessView) },
      text: formatTable(
        ["PROC", "STATE", "AGE", "OUTPUT", "ADDRESS", "COMMAND"],
        processes.map((process) => toRow(process, nowMs)),
        { ...tableLook(output), lastCell: "cut", colors: { running: "green" } },
      ),
    });
  });
}

function toRow(process: Process, nowMs: number): readonly string[] {
  const { processId, startedAt, outputBytes, address, binary, args } = process;
  return [
    processId,
    describeState(process),
    startedAt === undefined ? "-" : formatAge(nowMs - timestampMs(startedAt)),
    formatSize(Number(outputBytes)),
    address === "" ? "-" : address,
    [binary, ...args].map(showWord).join(" "),
  ];
}

/** Quoted only where a shell would take it for something else. */
const showWord = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : quoteCommand([word]));

function describeState(process: Process): string {
  if (!hasEnded(process)) return process.state === ProcessState.STARTING ? "starting" : "running";
  const { exitCode, exitSignal, exitReason } = toProcessView(process);
  if (exitCode !== null) return `exited ${String(exitCode)}`;
  return exitSignal === null ? (exitReason ?? "exited") : `signal ${String(exitSignal)}`;
}
