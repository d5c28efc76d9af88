import type { Command } from "commander";
import { createCollector } from "../../sandbox/stream/collector.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { openSandbox } from "../resolve/resolve-sandbox.ts";
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
    using server = await invocation.server(options);
    using sandbox = await openSandbox(server, id, invocation);
    const { host, sessionId, sandboxId } = sandbox;
    const collector = options.json === true ? createCollector(MAX_JSON_BYTES) : undefined;
    let named = path;
    let sizeBytes = 0;
    for await (const { entry, data } of host.files.readFile({ sessionId, path }, { signal })) {
      named = entry?.path ?? named;
      sizeBytes += data.length;
      if (collector === undefined) await writeTo(surroundings.stdout, data);
      else collector.add(data);
    }
    if (collector === undefined) return;
    await invocation.output(options).result({
      json: {
        sandboxId,
        path: named,
        content: collector.text(),
        sizeBytes,
        droppedBytes: collector.droppedBytes(),
      },
      text: "",
    });
  });
}
