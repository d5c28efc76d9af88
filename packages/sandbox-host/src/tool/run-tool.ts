import type { Clock } from "@turnbox/core";
import type { Logger } from "pino";
import type { Containers } from "../container/container.ts";
import type { SessionFiles } from "../file/session-files.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import { type BashCall, createRunBash } from "./bash.ts";
import type { CatalogTool, ToolName } from "./catalog.ts";
import { createRunGit } from "./git/run-git.ts";
import type { ToolResult } from "./result.ts";
import { createRunCommand } from "./run-command.ts";
import { createRunText } from "./text/run-text.ts";
import { TEXT_TOOLS, type TextToolName } from "./text/text-tools.ts";

/** Runs a tool of the catalog, in the tier that it belongs to. */
export type RunTool = (session: Session, tool: CatalogTool, call: BashCall) => Promise<ToolResult>;

const TEXT_NAMES: ReadonlySet<ToolName> = new Set(TEXT_TOOLS.map(({ name }) => name));

export function createRunTool(deps: {
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly files: SessionFiles;
  readonly clock: Clock;
  readonly log: Logger;
  /** The bound of a call that names none. */
  readonly toolTimeoutMs: number;
  /** How much of each output the result keeps. */
  readonly keepBytes: number;
}): RunTool {
  const runText = createRunText(deps);
  const runCommand = createRunCommand(deps);
  const runBash = createRunBash({ ...deps, runCommand });
  const runGit = createRunGit({ ...deps, runCommand });
  return async (session, { name, effect }, call) => {
    if (name === "bash") return await runBash(session, call);
    if (isText(name)) return await runText(session, name, { ...call, effect });
    return await runGit(session, name, call);
  };
}

function isText(name: ToolName): name is TextToolName {
  return TEXT_NAMES.has(name);
}
