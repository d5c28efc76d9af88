import { type CallOptions, SandboxError } from "@turnbox/client";
import { authorizeOperation, decidePermission, DEFAULT_PERMISSION_MODE, type PermissionMode } from "./permission.ts";
import { followLinks, resolveInside } from "./resolve-inside.ts";
import { createTerminals, type StartCommand } from "./terminals.ts";
import { readTextRange } from "./text-range.ts";
import type { ToolHost } from "./tool-host.ts";

/** Where the files of a tool host are, and what it allows. */
export interface ToolHostOptions {
  /** Absolute; relative paths begin here. */
  readonly root: string;
  /** Absolute paths of further directories that are inside. */
  readonly additionalDirs?: readonly string[];
  readonly permissions?: PermissionMode;
}

/** What a tool host works in. Paths are absolute and resolved. */
export interface ToolTarget {
  /** What the link at a path says; undefined if there is none or nothing. */
  readLink(path: string, options: CallOptions): Promise<string | undefined>;
  /** Follows no link at the end. */
  readFile(path: string, options: CallOptions): AsyncIterable<Uint8Array>;
  /** Follows no link at the end; makes missing directories. */
  writeFile(path: string, content: string, options: CallOptions): Promise<void>;
  readonly startCommand: StartCommand;
}

export function createToolHost(target: ToolTarget, options: ToolHostOptions): ToolHost {
  const { root, additionalDirs = [], permissions = DEFAULT_PERMISSION_MODE } = options;
  const terminals = createTerminals(target.startCommand);

  const resolvePath: ToolHost["resolvePath"] = async (path, call = {}) => {
    const seen = new Map<string, Promise<string | undefined>>();
    const readLink = (at: string) => {
      const reading = seen.get(at) ?? target.readLink(at, call);
      seen.set(at, reading);
      return reading;
    };
    // Each time again: what works in there may have made a link of a root.
    const follow = (dir: string) => followLinks(dir, readLink);
    const roots = [await follow(root), ...(await Promise.all(additionalDirs.map(follow)))] as const;
    return await resolveInside(path, { roots, readLink });
  };

  const whereTo = async (paths: readonly string[], call: CallOptions): Promise<"inside" | "outside"> => {
    try {
      for (const path of paths) await resolvePath(path, call);
      return "inside";
    } catch (thrown) {
      if (["PATH_REFUSED", "INVALID_ARGUMENT"].includes(SandboxError.from(thrown).reason)) return "outside";
      throw thrown;
    }
  };

  return {
    root,
    additionalDirs,
    permissions,
    resolvePath,
    readTextFile: async (path, { line, limit, ...call } = {}) => {
      const range = { ...(line === undefined ? {} : { line }), ...(limit === undefined ? {} : { limit }) };
      return await readTextRange(target.readFile(await resolvePath(path, call), call), range);
    },
    writeTextFile: async (path, content, call = {}) => {
      await target.writeFile(await resolvePath(path, call), content, call);
    },
    authorize: (operation) => {
      authorizeOperation(permissions, operation);
    },
    permissionDecision: async (request, call = {}) => {
      const paths = (request.toolCall.locations ?? []).map((location) => location.path);
      return decidePermission(permissions, request, await whereTo(paths, call));
    },
    createTerminal: async ({ command, args = [], env = {}, cwd = root, outputByteLimit }, call = {}) => {
      const spec = { command, args, env, cwd: await resolvePath(cwd, call) };
      return await terminals.create({ ...spec, ...(outputByteLimit === undefined ? {} : { outputByteLimit }) }, call);
    },
    killTerminal: terminals.killTerminal,
    terminalOutput: terminals.terminalOutput,
    waitForTerminalExit: terminals.waitForTerminalExit,
    releaseTerminal: terminals.releaseTerminal,
    [Symbol.asyncDispose]: terminals[Symbol.asyncDispose],
  };
}
