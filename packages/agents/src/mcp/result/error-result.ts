import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import type { Reason, SandboxError } from "@turnbox/client";

const GONE = "The sandbox no longer exists. Tell the user; starting this MCP server again gives you a new, empty one.";
const LATER = "Wait a moment, then call the tool again.";
const LOOK_FIRST =
  "It is not known whether the call had its effect. Look at the files first (`diff` shows what changed since the last turn), " +
  "and call the tool again only where something is missing.";
const NO_ROOM = "Discard forks that are no longer needed, or tell the user that the server has no room for a sandbox.";
const ACCESS = "Tell the user that the token of this MCP server does not open the Turnbox server.";

/** The table speaks to programs, of requests and their keys. A model has tools to call and a user to inform. */
const FOR_A_MODEL: Readonly<Partial<Record<Reason, string>>> = {
  INVALID_ARGUMENT: "Correct the named argument and call the tool again.",
  UNAUTHENTICATED: ACCESS,
  PERMISSION_DENIED: ACCESS,
  IDEMPOTENCY_CONFLICT: "The client used the id of this request before, for another call. Call the tool again.",
  GENERATION_CHANGED: "The sandbox was rolled back or restarted meanwhile. Look at the files, then decide again.",
  OUTCOME_UNKNOWN: LOOK_FIRST,
  CALL_ROLLED_BACK: "A rollback discarded what this call did. Call the tool again if it is still wanted.",
  CANCELLED: LOOK_FIRST,
  DEADLINE_EXCEEDED: LOOK_FIRST,
  INTERNAL: LOOK_FIRST,
  COMMAND_OUTCOME_UNKNOWN: LOOK_FIRST,
  HOST_UNREACHABLE: LOOK_FIRST,
  RATE_LIMITED: LATER,
  OVERLOADED: LATER,
  SHUTTING_DOWN: LATER,
  ROLLBACK_IN_PROGRESS: LATER,
  TOOLS_IN_FLIGHT: "Wait until your other tool calls have answered, then call the tool again.",
  PROCESSES_RUNNING: "Stop the processes that run in the sandbox, then call the tool again.",
  SESSION_NOT_FOUND: GONE,
  SESSION_DESTROYING: GONE,
  SANDBOX_NOT_FOUND: GONE,
  SESSION_PAUSED: "The sandbox is paused. Ask the user to resume it (`turnbox resume`), then call the tool again.",
  SESSION_NOT_ACTIVE: "Tell the user; `turnbox repair` may bring the sandbox back.",
  SANDBOX_LOST: "The files are still there, running processes are not. Look at the files, then go on.",
  SANDBOX_EXISTS: "Tell the user that the name given to this MCP server is taken by another sandbox.",
  SNAPSHOT_NOT_FOUND: "`turns` lists the turns and snapshots that there are; use one of them.",
  SNAPSHOTS_NOT_AVAILABLE: "The storage of this sandbox makes no snapshots: do without rollback, undo, fork and diff.",
  SNAPSHOT_SPACE_EXHAUSTED:
    "Delete large files that are not needed; old turns take up the rest. Tell the user if that does not help.",
  MAX_SESSIONS_REACHED: NO_ROOM,
  SESSION_LIMIT_REACHED: NO_ROOM,
  FLEET_EXHAUSTED: NO_ROOM,
  POOL_FULL: NO_ROOM,
  DATA_DISK_FULL: NO_ROOM,
  SERVER_UNREACHABLE: "Ask the user to start the Turnbox server (`turnbox up`), then call the tool again.",
};

/** What a model can do about an error. What the error itself brings along knows best. */
export const remedyForModel = ({ metadata, reason, remedy }: SandboxError): string =>
  metadata["remedy"] ?? FOR_A_MODEL[reason] ?? remedy;

/** A failure of ours as a result, so that the model sees it and can act on it. */
export function toErrorResult(error: SandboxError): CallToolResult {
  const { reason, message, retryable, admitted, retryAfterMs, metadata } = error;
  const wait =
    retryAfterMs === undefined ? "" : ` (not before ${String(Math.ceil(retryAfterMs / 1000))} s have passed)`;
  return {
    isError: true,
    content: [{ type: "text", text: `${reason}: ${message}\nWhat to do: ${remedyForModel(error)}${wait}` }],
    _meta: {
      "turnbox/error": {
        reason,
        retryable,
        admitted,
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
        metadata,
      },
    },
  };
}
