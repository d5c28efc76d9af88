import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { SandboxError } from "@turnbox/core";
import { importResult, importTemplate } from "../import-template.ts";
import type { Invocation } from "../invocation.ts";
import { type ServerOptions, withExamples, withServerOptions } from "../option.ts";
import { whileWorking } from "../progress/while-working.ts";
import { parseProgramFailure } from "../service/program-failure.ts";
import { findServiceProgram } from "../service/service-program.ts";
import type { Surroundings } from "../surroundings.ts";

/** Large images on a slow disk take their time. */
const BUILD_MS = 45 * 60_000;

interface BuildOciOptions extends ServerOptions {
  readonly ref?: string;
  readonly output?: string;
}

export function registerTemplateBuildOci(build: Command, invocation: Invocation): void {
  withExamples(
    withServerOptions(build.command("oci <name> <layout>"))
      .summary("from an OCI image layout, with umoci")
      .description(
        "Unpack the image of an OCI image layout (a directory, or a tar archive of one) on this machine (needs root and " +
          "umoci) and import its files on every host. What the image's config says is not taken over.",
      )
      .option("--ref <ref>", "the image's name in the layout (default: the only one for this machine)")
      .option("--output <file>", "keep the archive of the root filesystem here"),
    [
      ["turnbox template build oci tools ./tools-image", "the only image of a layout"],
      ["turnbox template build oci tools images.tar --ref v2", "one of several, from an archive"],
    ],
  ).action(async (name: string, layout: string, options: BuildOciOptions) => {
    const { surroundings, signal } = invocation;
    if (process.getuid?.() !== 0) {
      throw new SandboxError("PERMISSION_DENIED", "unpacking an image needs root: its files have owners");
    }
    // Asked for before the long work: without a server there is nowhere to import to.
    using turnbox = invocation.turnbox(options);
    await turnbox.templates({ signal });
    const directory = await mkdtemp(join(tmpdir(), "turnbox-build-"));
    try {
      const path = options.output === undefined ? join(directory, "root.tar") : resolve(options.output);
      const scratch = join(directory, "scratch");
      await mkdir(scratch, { mode: 0o700 });
      const ref = options.ref === undefined ? [] : [`--ref=${options.ref}`];
      const args = [`--home=${surroundings.environment.home}`, `--layout=${resolve(layout)}`, ...ref];
      const words = [...args, `--scratch=${scratch}`, `--output=${path}`];
      await whileWorking(
        { text: "unpacking the image", options, work: () => runBuild(surroundings, words, { signal }) },
        invocation,
      );
      // The unpacked files are no longer needed, and the hosts may need the room.
      await rm(scratch, { recursive: true, force: true });
      const imported = await importTemplate(turnbox, { name, path, options }, invocation);
      await invocation.output(options).result(importResult(imported));
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
}

/**
 * Runs the host's builder to its end, which it also comes to when interrupted: it ends the programs that it runs before it
 * ends itself, so nothing is written any more when this returns.
 */
async function runBuild(
  surroundings: Surroundings,
  args: readonly string[],
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const program = await findServiceProgram("@turnbox/sandbox-host", surroundings, { signal });
  const child = await surroundings.runner.start({
    command: program.node,
    args: [program.entry, "build-template", "oci", ...args],
    env: surroundings.environment.variables,
    deadlineMs: BUILD_MS,
  });
  const stop = (): void => {
    child.kill("SIGTERM");
  };
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  child.stdin.end();
  child.stdout.resume();
  const [exit, stderr] = await Promise.all([child.exit, text(child.stderr)]);
  signal.removeEventListener("abort", stop);
  signal.throwIfAborted();
  if (exit.kind === "exited" && exit.exitCode === 0) return;
  throw parseProgramFailure(stderr, `the image was not unpacked: ${stderr.trim().slice(0, 500)}`);
}
