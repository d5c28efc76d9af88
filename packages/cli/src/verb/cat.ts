import type { Command } from "commander";
import type { Sandbox } from "@turnbox/client";
import { createCollector } from "@turnbox/client/internal";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { writeTo } from "../surroundings.ts";

/** Most bytes in the object of `--json`. */
const MAX_JSON_BYTES = 16 * 1024 * 1024;

export function registerCat(program: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(program.command("cat <id> <path>"))
      .summary("print a file of a sandbox")
      .description("Print a file of a sandbox, bytes unchanged. Relative paths begin at /workspace."),
    [
      ["turnbox cat web /etc/os-release", "for reading"],
      ["turnbox cat web logo.png > logo.png", "any bytes"],
    ],
  ).action(async (id: string, path: string, options: ServerOptions) => {
    const { signal, surroundings } = invocation;
    using turnbox = invocation.turnbox(options);
    const sandbox = await turnbox.handle(id, { signal });
    if (options.json === true) await catAsJson({ sandbox, path, options }, invocation);
    else
      for await (const bytes of sandbox.files.readStream(path, { signal })) await writeTo(surroundings.stdout, bytes);
  });
}

interface Cat {
  readonly sandbox: Sandbox;
  readonly path: string;
  readonly options: ServerOptions;
}

async function catAsJson({ sandbox, path, options }: Cat, invocation: Invocation): Promise<void> {
  const { signal } = invocation;
  const collector = createCollector(MAX_JSON_BYTES);
  let sizeBytes = 0;
  const entry = await sandbox.files.stat(path, { signal });
  for await (const bytes of sandbox.files.readStream(path, { signal })) {
    sizeBytes += bytes.length;
    collector.add(bytes);
  }
  const content = { content: collector.text(), sizeBytes, droppedBytes: collector.droppedBytes() };
  await invocation.output(options).result({ json: { sandboxId: sandbox.id, path: entry.path, ...content }, text: "" });
}
