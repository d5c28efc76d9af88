import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { SandboxError } from "@turnbox/core";
import { importResult, importTemplate } from "../import-template.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { runHostProgramVisibly } from "../service/host-program.ts";
import { registerTemplateBuildOci } from "./template-build-oci.ts";

/** A whole distribution over a slow mirror takes its time. */
const BUILD_MS = 45 * 60_000;

interface BuildOptions extends ServerOptions {
  readonly name: string;
  readonly packages?: string;
  readonly output?: string;
}

export function registerTemplateBuild(template: Command, invocation: Invocation): void {
  const build = withExamples(
    template
      .command("build")
      .summary("build a template and import it")
      .description("Build a root filesystem on this machine and import it on every host."),
    [
      ["turnbox template build debian", "from the packages of Debian"],
      ["turnbox template build oci tools ./tools-image --json", "from an OCI image layout, for programs"],
    ],
  );
  registerTemplateBuildDebian(build, invocation);
  registerTemplateBuildOci(build, invocation);
}

function registerTemplateBuildDebian(build: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(build.command("debian"))
      .summary("a whole Debian, with debootstrap")
      .description(
        "Build a root filesystem on this machine (needs root and debootstrap) and import it on every host. Release and " +
          "mirror are those of this machine's apt sources.",
      )
      .option("--name <name>", "the template's name", "debian")
      .option(
        "--packages <list>",
        "what it has besides the base, separated by commas (default: git,python3,curl,ca-certificates,ripgrep)",
      )
      .option("--output <file>", "keep the archive here"),
    [
      ["turnbox template build debian", "with git, python3, curl, ca-certificates and ripgrep"],
      ["turnbox template build debian --name cc --packages git,gcc,make,libc6-dev", "with other packages"],
      ["turnbox template build debian --output debian.tar", "keep the archive, to import elsewhere"],
    ],
  ).action(async ({ name, ...options }: BuildOptions) => {
    const { surroundings, signal } = invocation;
    if (process.getuid?.() !== 0) {
      throw new SandboxError("PERMISSION_DENIED", "building debian needs root: debootstrap makes devices and owners");
    }
    // Asked for before the long work: without a server there is nowhere to import to.
    using turnbox = invocation.turnbox(options);
    await turnbox.templates({ signal });
    const directory = await mkdtemp(join(tmpdir(), "turnbox-build-"));
    try {
      const path = options.output === undefined ? join(directory, "debian.tar") : resolve(options.output);
      const packages = options.packages === undefined ? [] : [`--packages=${options.packages}`];
      const args = ["build-template", "debian", ...packages, "--output", path];
      await runHostProgramVisibly(surroundings, { args, deadlineMs: BUILD_MS }, { signal });
      const imported = await importTemplate(turnbox, { name, path, options }, invocation);
      await invocation.output(options).result(importResult(imported));
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
}
