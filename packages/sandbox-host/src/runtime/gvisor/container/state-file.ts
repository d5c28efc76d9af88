import { readFileSync } from "node:fs";
import { join } from "node:path";

/** What runsc wrote down about a container. It is a claim: that a process of this pid lives, and is ours, must be checked. */
export interface ContainerState {
  readonly id: string;
  readonly status: string;
  readonly sandboxPid: number;
  readonly goferPid: number;
  /** Not always below runsc's root: a stale socket file of the same id makes runsc choose another place. */
  readonly controlSocketPath: string | undefined;
}

/** Whether the boot came to its end; one that was cut off leaves `creating` or `created`, and nothing runs in it. */
export function isBooted({ status }: ContainerState): boolean {
  return status !== "creating" && status !== "created";
}

const STATE_SUFFIX = ".state";

/** A container is in a sandbox of its own name, unless it was booted in another one. */
export function stateFilePath(runscRoot: string, id: string, sandboxId = id): string {
  return join(runscRoot, `${id}_sandbox:${sandboxId}${STATE_SUFFIX}`);
}

export function lockFilePath(runscRoot: string, id: string, sandboxId = id): string {
  return join(runscRoot, `${id}_sandbox:${sandboxId}.lock`);
}

/** The path at which runsc puts the control socket, unless it is too long or taken. */
export function controlSocketPath(runscRoot: string, id: string): string {
  return join(runscRoot, `runsc-${id}.sock`);
}

/** The id that a file of runsc's root is the state of. */
export function idOfStateFile(fileName: string): string | undefined {
  const [, id] = /^([^_]+)_sandbox:[^_.]+\.state$/.exec(fileName) ?? [];
  return id;
}

/** Undefined if the text is not a whole state: a crash may have left half of one. */
export function parseStateFile(text: string): ContainerState | undefined {
  const state = asRecord(parseJson(text));
  const sandbox = asRecord(state["sandbox"]);
  const { id, status, goferPid } = state;
  const { pid, controlSocketPath } = sandbox;
  if (typeof id !== "string" || typeof status !== "string" || typeof pid !== "number") return undefined;
  return {
    id,
    status,
    sandboxPid: pid,
    goferPid: typeof goferPid === "number" ? goferPid : 0,
    controlSocketPath:
      typeof controlSocketPath === "string" && controlSocketPath !== "" ? controlSocketPath : undefined,
  };
}

/** It is small, on this machine's disk and on the way of every call, so it is read at once. */
export function readStateFile(runscRoot: string, id: string, sandboxId = id): ContainerState | undefined {
  try {
    return parseStateFile(readFileSync(stateFilePath(runscRoot, id, sandboxId), "utf8"));
  } catch {
    return undefined;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function asRecord(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}
