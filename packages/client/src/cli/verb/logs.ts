import type { Command } from "commander";
import { invalidArgument } from "@turnbox/core";
import { createCollector } from "../../sandbox/stream/collector.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { noteDropped } from "../process/attach-process.ts";
import { createOutputLines } from "../process/output-lines.ts";
import { toProcessView } from "../process/process-view.ts";
import { readOutput } from "../process/read-output.ts";
import { PROCESS_RULE, resolveProcess } from "../process/resolve-process.ts";
import { openLink, type SandboxLink } from "../resolve/sandbox-link.ts";
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
    const offset = parseOffset(options.from ?? "0");
    const { signal, surroundings } = invocation;
    using server = await invocation.server(options);
    using link = await openLink({ server, reference: id, clock: surroundings.clock, signal }, invocation);
    const process = await link.use((sandbox) => resolveProcess(sandbox, proc, { signal }));
    const { processId } = process;
    if (options.json === true && options.follow === true) {
      await followAsLines({ link, processId, offset }, invocation);
      return;
    }
    const collector = options.json === true ? createCollector(MAX_JSON_BYTES) : undefined;
    let goneBytes = 0n;
    const end = await readOutput(
      link,
      {
        processId,
        offset,
        until: options.follow === true ? "follow" : "now",
        onBytes: async (bytes) => {
          if (collector === undefined) await writeTo(surroundings.stdout, bytes);
          else collector.add(bytes);
        },
        onDropped: async (bytes) => {
          goneBytes += bytes;
          await noteDropped(bytes, invocation);
        },
      },
      { signal },
    );
    if (collector === undefined) return;
    await invocation.output(options).result({
      json: {
        sandboxId: link.sandboxId,
        process: toProcessView(end.exited ?? process),
        output: collector.text(),
        offset: Number(offset),
        nextOffset: Number(end.offset),
        goneBytes: Number(goneBytes),
        droppedBytes: collector.droppedBytes(),
      },
      text: "",
    });
  });
}

interface Followed {
  readonly link: SandboxLink;
  readonly processId: string;
  readonly offset: bigint;
}

async function followAsLines({ link, processId, offset }: Followed, invocation: Invocation): Promise<void> {
  const lines = createOutputLines(invocation.output({ json: true }), { sandboxId: link.sandboxId, offset });
  const { exited } = await readOutput(
    link,
    { processId, offset, until: "follow", onBytes: lines.bytes, onDropped: lines.dropped },
    { signal: invocation.signal },
  );
  await lines.end(exited ?? "detached");
}

export function parseOffset(raw: string): bigint {
  if (!/^\d{1,15}$/.test(raw)) throw invalidArgument("from", `${JSON.stringify(raw)} is not a number of bytes`);
  return BigInt(raw);
}
