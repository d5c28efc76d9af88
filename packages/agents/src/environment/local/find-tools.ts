import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { hasReason } from "@turnbox/client";
import { parseGlobPattern } from "../tool/glob-pattern.ts";
import { grepArguments, toMatches } from "../tool/grep-command.ts";
import { counted, done, listed, refused } from "../tool/outcome.ts";
import { DEFAULT_FILE_TIMEOUT_MS } from "../tool/tool-schemas.ts";
import type { ToolSet } from "../tool/tool-set.ts";
import { onFile } from "./file-tools.ts";
import type { LocalTarget } from "./local-target.ts";
import { walk, type Walked } from "./walk.ts";

const MAX_LISTED = 1000;
const MAX_DEPTH = 200;

export const findTools: Pick<ToolSet<LocalTarget>, "list_dir" | "glob" | "grep"> = {
  list_dir: async ({ root }, { path, depth }, { signal }) =>
    await onFile(root, path, async (directory) => {
      const lines: string[] = [];
      let total = 0;
      for await (const entry of walk(directory.path, { depth, signal })) {
        total += 1;
        if (lines.length < MAX_LISTED) lines.push(await describe(directory.path, entry));
      }
      return done(total === 0 ? `${directory.shown} is empty.` : listed(lines, total, ["entry", "entries"]));
    }),
  glob: async ({ root }, { pattern, path, max_results: maxResults }, { signal }) =>
    await onFile(root, path, async (directory) => {
      const matches = parseGlobPattern(pattern);
      const found: string[] = [];
      let total = 0;
      for await (const { relative, dirent } of walk(directory.path, { depth: MAX_DEPTH, signal })) {
        if (!matches(relative)) continue;
        total += 1;
        const shown = directory.shown === "." ? relative : join(directory.shown, relative);
        if (found.length < maxResults) found.push(dirent.isDirectory() ? `${shown}/` : shown);
      }
      return done(total === 0 ? "Nothing matches." : listed(found, total, ["path", "paths"]));
    }),
  grep: async ({ root, env, runner }, params, { signal, timeoutMs: deadlineMs = DEFAULT_FILE_TIMEOUT_MS }) =>
    await onFile(root, params.path, async ({ shown }) => {
      const spec = { command: "grep", args: grepArguments(params, shown), cwd: root, env, deadlineMs };
      try {
        return toMatches(await runner.run(spec, { signal }), params.max_results);
      } catch (thrown) {
        signal.throwIfAborted();
        if (!hasReason(thrown, "COMMAND_OUTCOME_UNKNOWN")) throw thrown;
        return { ...refused("grep took too long and was ended."), exitReason: "timed_out" };
      }
    }),
};

async function describe(top: string, { relative, dirent }: Walked): Promise<string> {
  if (dirent.isDirectory()) return `${relative}/`;
  if (dirent.isSymbolicLink()) return `${relative} (link)`;
  if (!dirent.isFile()) return `${relative} (special)`;
  const stats = await lstat(join(top, relative)).catch(() => undefined);
  return stats === undefined ? relative : `${relative} (${counted(stats.size, "byte")})`;
}
