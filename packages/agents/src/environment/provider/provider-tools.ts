import { type Clock, hasReason } from "@turnbox/client";
import type { Launcher } from "../../provider/launch/launcher.ts";
import type { ToolHost } from "../../provider/tool-host/tool-host.ts";
import { toCommandOutcome } from "../tool/command-outcome.ts";
import { parseGlobPattern } from "../tool/glob-pattern.ts";
import { grepArguments, toMatches } from "../tool/grep-command.ts";
import { counted, done, listed, refused, type ToolOutcome } from "../tool/outcome.ts";
import { editText, showLines } from "../tool/text.ts";
import { DEFAULT_BASH_TIMEOUT_MS, DEFAULT_FILE_TIMEOUT_MS } from "../tool/tool-schemas.ts";
import type { ToolCall, ToolSet } from "../tool/tool-set.ts";
import { type Launched, runLaunched } from "./run-launched.ts";

/** What a provider prepared, as far as tools need it. */
export interface ProviderTarget {
  readonly launcher: Launcher;
  readonly toolHost: ToolHost;
  /** The profile's variables. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
}

const MAX_LISTED = 1000;

/** Text files go through the tool host, the rest are commands in the runtime: `bash`, `find` and `grep` have to be there. */
export const PROVIDER_TOOLS: ToolSet<ProviderTarget> = {
  bash: async (target, { cmd, cwd, env, timeout_ms: timeoutMs }, call) => {
    const ms = timeoutMs ?? call.timeoutMs ?? DEFAULT_BASH_TIMEOUT_MS;
    const command = { command: "bash", args: ["-c", cmd], cwd, env };
    const { stdout, stderr, end } = await launch(target, command, { ...call, timeoutMs: ms });
    return toCommandOutcome([stdout, stderr], end);
  },
  read_file: ({ toolHost }, params, { signal }) =>
    onFile(async () => showLines(params.path, await toolHost.readTextFile(params.path, { signal }), params)),
  write_file: ({ toolHost }, { path, content }, { signal }) =>
    onFile(async () => {
      await toolHost.writeTextFile(path, content, { signal });
      return done(`Wrote ${path} (${counted(Buffer.byteLength(content), "byte")}).`);
    }),
  edit_file: ({ toolHost }, params, { signal }) =>
    onFile(async () => {
      const { text, outcome } = editText(params.path, await toolHost.readTextFile(params.path, { signal }), params);
      if (text !== undefined) await toolHost.writeTextFile(params.path, text, { signal });
      return outcome;
    }),
  list_dir: async (target, { path, depth }, call) => {
    const found = await find(target, ["-maxdepth", String(depth)], { path, call });
    if (found.outcome !== undefined) return found.outcome;
    const lines = found.paths.slice(0, MAX_LISTED);
    return done(lines.length === 0 ? `${path} is empty.` : listed(lines, found.paths.length, ["entry", "entries"]));
  },
  glob: async (target, { pattern, path, max_results: maxResults }, call) => {
    const matches = parseGlobPattern(pattern);
    const found = await find(target, [], { path, call });
    if (found.outcome !== undefined) return found.outcome;
    const paths = found.paths.filter((entry) => matches(entry.replace(/\/$/, "")));
    const base = path === "." ? "" : `${path.replace(/\/$/, "")}/`;
    const shown = paths.slice(0, maxResults).map((entry) => base + entry);
    return done(paths.length === 0 ? "Nothing matches." : listed(shown, paths.length, ["path", "paths"]));
  },
  grep: async (target, params, call) => {
    await target.toolHost.resolvePath(params.path, { signal: call.signal });
    const command = { command: "grep", args: grepArguments(params, params.path), cwd: ".", env: {} };
    const { stdout, stderr, end } = await launch(target, command, quietly(call));
    return end.kind === "exited"
      ? toMatches({ exitCode: end.exitCode, stdout, stderr }, params.max_results)
      : toCommandOutcome([stderr], end);
  },
};

interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A bash whose input is a socket takes itself for a remote login, and reads a startup file, unless another shell is above. */
const ONE_DEEP = { SHLVL: "1" };

async function launch(
  { launcher, toolHost, env, clock }: ProviderTarget,
  { cwd, ...command }: Command,
  call: ToolCall & { readonly timeoutMs: number },
): Promise<Launched> {
  const { signal } = call;
  const path = await toolHost.resolvePath(cwd, { signal });
  const handle = await launcher.launch(
    { ...command, cwd: path, env: { ...ONE_DEEP, ...env, ...command.env } },
    { signal },
  );
  return await runLaunched(handle, { ...call, clock });
}

/** The output of a tool's own command is not the tool's. */
const quietly = ({ signal, timeoutMs = DEFAULT_FILE_TIMEOUT_MS }: ToolCall) => ({
  signal,
  timeoutMs,
  onProgress: () => undefined,
});

type Found =
  | { readonly paths: readonly string[]; readonly outcome?: undefined }
  | { readonly paths?: undefined; readonly outcome: ToolOutcome };

/** Everything below a directory, in the order of names; directories end in a slash. Links are not followed. */
async function find(
  target: ProviderTarget,
  args: readonly string[],
  { path, call }: { readonly path: string; readonly call: ToolCall },
): Promise<Found> {
  // Directories, a mark that no path can be, and the rest: every find knows as much.
  const script = `find . -mindepth 1 "$@" -type d -print0; printf '/\\0'; find . -mindepth 1 "$@" ! -type d -print0`;
  const command = { command: "bash", args: ["-c", script, "find", ...args], cwd: path, env: {} };
  const { stdout, stderr, end } = await launch(target, command, quietly(call));
  if (end.kind !== "exited" || end.exitCode !== 0)
    return { outcome: { ...toCommandOutcome([stderr], end), isError: true } };
  const found = stdout.split("\0").map((entry) => entry.replace(/^\.\//, ""));
  const mark = found.indexOf("/");
  const directories = found.slice(0, mark).map((entry) => `${entry}/`);
  return { paths: [...directories, ...found.slice(mark + 1, -1)].toSorted() };
}

/** That there is no such file is an answer; a path outside of the roots is a refusal. */
async function onFile(work: () => Promise<ToolOutcome>): Promise<ToolOutcome> {
  try {
    return await work();
  } catch (thrown) {
    if (hasReason(thrown, "FILE_NOT_FOUND")) return refused(thrown.message);
    throw thrown;
  }
}
