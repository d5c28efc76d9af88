import type { Command } from "commander";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";

interface RefreshOptions extends ServerOptions {
  readonly image?: string;
}

export function registerFleetRefresh(fleet: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(fleet.command("refresh"))
      .summary("replace instances of an old image")
      .description(
        "Replace instances of an old image one by one. Those whose sandboxes would be lost are skipped and named.",
      )
      .option("--image <image>", "the image that instances should have (default: the configured one)"),
    [
      ["turnbox fleet refresh", "to the configured image"],
      ["turnbox fleet refresh --image ami-0123", "to another one"],
    ],
  ).action(async ({ image, ...options }: RefreshOptions) => {
    const { signal } = invocation;
    using turnbox = invocation.turnbox(options);
    const wanted = image === undefined ? {} : { image };
    const { replacing, skipped } = await turnbox.fleet.refresh({ ...wanted, signal });
    const output = invocation.output(options);
    await output.result({
      json: { replacing, skipped },
      text: replacing.length === 0 ? "there is nothing to replace\n" : `replacing ${replacing.join(", ")}\n`,
    });
    if (skipped.length > 0) await output.note(`skipped, they hold sandboxes that would be lost: ${skipped.join(", ")}`);
  });
}
