import { type CommandRunner, SandboxError } from "@turnbox/core";

const PACK_DEADLINE_MS = 10 * 60_000;

/** Packs a root filesystem into a tar archive that a host imports. What is in /dev is left out: the sandbox makes its own. */
export async function packRoot(
  { root, output }: { readonly root: string; readonly output: string },
  deps: { readonly runner: CommandRunner; readonly signal: AbortSignal },
): Promise<void> {
  // A colon in the path of the output would name a host to GNU tar.
  const args = ["-C", root, "--force-local", "--exclude=./dev/*", "--numeric-owner", "-cf", output, "."];
  const { exitCode, stderr } = await deps.runner.run(
    { command: "tar", args, deadlineMs: PACK_DEADLINE_MS, env: { LC_ALL: "C" } },
    { signal: deps.signal },
  );
  if (exitCode === 0) return;
  const why = stderr.trim().split("\n").at(-1) ?? "";
  throw new SandboxError("TEMPLATE_INVALID", `packing failed (exit code ${exitCode}): ${why}`);
}
