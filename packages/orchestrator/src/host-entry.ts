import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { SandboxError } from "@turnbox/core";

const HOST_PACKAGE = "@turnbox/sandbox-host";

/** The program of the sandbox-host that is installed beside the file at `from` (a URL), or `COMMAND_MISSING`. */
export function resolveHostEntry(from: string): string {
  try {
    const manifest = createRequire(from).resolve(`${HOST_PACKAGE}/package.json`);
    const { bin } = JSON.parse(readFileSync(manifest, "utf8")) as { readonly bin: Readonly<Record<string, string>> };
    const entry = Object.values(bin)[0];
    if (entry !== undefined) return join(dirname(manifest), entry);
  } catch (cause) {
    throw new SandboxError("COMMAND_MISSING", `${HOST_PACKAGE} is not installed; give its program with --host-entry`, {
      cause,
    });
  }
  throw new SandboxError("COMMAND_MISSING", `${HOST_PACKAGE} has no program; give one with --host-entry`);
}
