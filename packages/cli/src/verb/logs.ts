import type { Command } from "commander";
import { invalidArgument } from "@turnbox/core";
import type { SandboxProcess } from "@turnbox/client";
import { createCollector } from "@turnbox/client/internal";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { byParts, noteDropped } from "../process/attach-process.ts";
import { createOutputLines } from "../process/output-lines.ts";
import { toProcessView } from "../process/process-view.ts";
import { PROCESS_RULE, resolveProcess } from "../process/resolve-process.ts";
import { writeTo } from "../surroundings.ts";

/** Most bytes in the object of `--json`. */
const MAX_JSON_BYTES = 16 * 1024 * 1024;

interface LogsOptions extends ServerOptions {
  readonly follow?: boolean;
  readonly from?: string;
}

export function registerLogs(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("logs <id> <proc>"))
      .summary("print what a process has written")
      .description(
        `Print the output of a process, both streams in the order they came, also after it has ended. ${PROCESS_RULE} ` +
          "The oldest output of one that writes much is dropped; a note says how much.",
      )
      .option("-f, --follow", "go on until the process has ended; a connection that breaks is made again")
      .option("--from <offset>", "begin at this byte (default: 0)"),
    [
      ["turnbox logs web 3f", "what there is"],
      ["turnbox logs web 3f -f", "and what comes"],
      ["turnbox logs web 3f -f --json", "an object on each line, as it comes"],
      ["turnbox logs web 3f --from 4096 --json", "from an offset; the object says where to go on"],
    ],
  ).action(async (id: string, proc: string, options: LogsOptions) => {
    const from = parseOffset(options.from ?? "0");
    const { signal, surroundings } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const process = await resolveProcess(sandbox, proc, { signal });
    if (options.json === true && options.follow === true) {
      await followAsLines({ sandboxId: sandbox.id, process, from }, invocation);
      return;
    }
    const collector = options.json === true ? createCollector(MAX_JSON_BYTES) : undefined;
    let goneBytes = 0;
    let nextOffset = from;
    const onOutput = byParts({
      onBytes: async (bytes) => {
        nextOffset += bytes.length;
        if (collector === undefined) await writeTo(surroundings.stdout, bytes);
        else collector.add(bytes);
      },
      onDropped: async (bytes) => {
        goneBytes += bytes;
        nextOffset += bytes;
        await noteDropped(bytes, invocation);
      },
    });
    const ended = await process.read(onOutput, { from, follow: options.follow === true, signal });
    if (collector === undefined) return;
    await invocation.output(options).result({
      json: {
        sandboxId: sandbox.id,
        process: toProcessView(ended ?? process.known),
        output: collector.text(),
        offset: from,
        nextOffset,
        goneBytes,
        droppedBytes: collector.droppedBytes(),
      },
      text: "",
    });
  });
}

interface Followed {
  readonly sandboxId: string;
  readonly process: SandboxProcess;
  readonly from: number;
}

async function followAsLines({ sandboxId, process, from }: Followed, invocation: Invocation): Promise<void> {
  const lines = createOutputLines(invocation.output({ json: true }), { sandboxId, offset: from });
  const onOutput = byParts({ onBytes: lines.bytes, onDropped: lines.dropped });
  await lines.end((await process.read(onOutput, { from, signal: invocation.signal })) ?? "detached");
}

export function parseOffset(raw: string): number {
  if (!/^\d{1,15}$/.test(raw)) throw invalidArgument("from", `${JSON.stringify(raw)} is not a number of bytes`);
  return Number(raw);
}
