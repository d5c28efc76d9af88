import type { Command } from "commander";
import { DEFAULT_TIMEOUT_MS } from "@turnbox/client";
import { invalidArgument } from "@turnbox/core";
import { formatSize } from "../format/size.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { printable } from "../printable.ts";
import type { InputStream } from "../surroundings.ts";

interface WriteOptions extends ServerOptions {
  readonly mode?: string;
  readonly parents?: boolean;
}

export function registerWrite(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("write <id> <path>"))
      .summary("write stdin to a file of a sandbox")
      .description(
        "Write stdin, to its end, to a file of a sandbox. The old content is there until all of the new one is. Relative paths " +
          "begin at /workspace.",
      )
      .option("--mode <octal>", "its permission bits (default: those it has, or 644)")
      .option("-p, --parents", "make missing directories"),
    [
      ["turnbox write web notes.txt < notes.txt", "a file"],
      ["date | turnbox write web -p logs/started --mode 600", "in a directory that may be missing"],
    ],
  ).action(async (id: string, path: string, options: WriteOptions) => {
    const mode = parseMode(options.mode);
    const { signal, surroundings } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    const createDirectories = options.parents === true;
    const entry = await sandbox.files.write(path, bytesOf(surroundings.stdin), {
      mode,
      createDirectories,
      signal,
      timeoutMs: DEFAULT_TIMEOUT_MS.stream,
    });
    const output = invocation.output(options);
    const { sizeBytes } = entry;
    if (output.format === "json")
      await output.result({ json: { sandboxId: sandbox.id, path: entry.path, sizeBytes, mode: entry.mode }, text: "" });
    else await output.note(`wrote ${printable(entry.path)} (${formatSize(sizeBytes)})`);
  });
}

async function* bytesOf(stdin: InputStream): AsyncIterable<Uint8Array> {
  for await (const chunk of stdin) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}

/** 0 leaves the bits to the host. */
function parseMode(raw: string | undefined): number {
  if (raw === undefined) return 0;
  if (!/^0?[0-7]{3}$/.test(raw) || Number.parseInt(raw, 8) === 0)
    throw invalidArgument("mode", `${JSON.stringify(raw)} is not a mode like 644`);
  return Number.parseInt(raw, 8);
}
