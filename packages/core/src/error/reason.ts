import { Code } from "@connectrpc/connect";
import { ARCHIVE_REASONS } from "./archive-reasons.ts";
import { CLIENT_REASONS } from "./client-reasons.ts";
import { OBJECT_REASONS } from "./object-reasons.ts";
import { row, type ReasonRow } from "./reason-row.ts";

export type { Admitted, ReasonRow, Retry } from "./reason-row.ts";

/**
 * Every reason Turnbox can fail for, and the only place that knows Connect codes. The table is total: a reason without
 * a row does not compile. Reasons are stable; a new one may be added, none changes its meaning.
 */
export const ERROR_TABLE = {
  // Requests
  INVALID_ARGUMENT: row(
    Code.InvalidArgument,
    "never",
    "A field of the request breaks its rule; the message names the field and the rule.",
    "Correct the named field and send the request again.",
  ),
  UNAUTHENTICATED: row(
    Code.Unauthenticated,
    "never",
    "There is no token, or it is malformed, expired or signed by somebody else.",
    "Send `Authorization: Bearer TOKEN` with the home's token or a fresh one from ConnectSandbox.",
  ),
  PERMISSION_DENIED: row(
    Code.PermissionDenied,
    "never",
    "The token is good, but does not cover this method or this sandbox.",
    "Use a token whose verbs and sandbox cover the call.",
  ),
  IDEMPOTENCY_CONFLICT: row(
    Code.FailedPrecondition,
    "never",
    "The idempotency key was used before with another payload.",
    "Use a new key for a new request, or repeat the first request unchanged.",
  ),
  GENERATION_CHANGED: row(
    Code.FailedPrecondition,
    "never",
    "The session was rolled back or restarted since the caller looked at it.",
    "Read the session, decide again on what it is now, and send its current generation.",
  ),
  OUTCOME_UNKNOWN: row(
    Code.Aborted,
    "never",
    "The call was started and its end was not recorded; it may or may not have had its effect.",
    "Inspect the files (diff against the last snapshot) and go on under a new call id.",
    "unknown",
  ),
  CALL_ROLLED_BACK: row(
    Code.FailedPrecondition,
    "never",
    "The call ran, and a rollback discarded its effect since.",
    "Use a new call id to run it again on the present files.",
    "yes",
  ),
  UNIMPLEMENTED: row(
    Code.Unimplemented,
    "never",
    "This server does not offer the method yet.",
    "See docs/UNIMPLEMENTED.md for what is to come; upgrade the server when it has arrived.",
  ),
  CANCELLED: row(
    Code.Canceled,
    "if_idempotent",
    "The caller went away or cancelled before the answer.",
    "Send the request again under the same idempotency key.",
    "unknown",
  ),
  DEADLINE_EXCEEDED: row(
    Code.DeadlineExceeded,
    "if_idempotent",
    "The deadline of the call passed before the answer.",
    "Send the request again under the same idempotency key, with a longer deadline.",
    "unknown",
  ),
  RATE_LIMITED: row(
    Code.ResourceExhausted,
    "after_delay",
    "The caller sends more requests than its allowance.",
    "Wait for the given time, then send again.",
  ),
  OVERLOADED: row(
    Code.ResourceExhausted,
    "after_delay",
    "The server has as much work in flight as it admits.",
    "Wait for the given time, then send again.",
  ),
  SHUTTING_DOWN: row(
    Code.Unavailable,
    "after_delay",
    "The server is stopping and takes no new work.",
    "Send the request again when the server is back.",
  ),
  INTERNAL: row(
    Code.Internal,
    "if_idempotent",
    "Something failed that should not have; the server's log has the cause under the request id.",
    "Look up the request id in the server's log; report it if the log does not help.",
    "unknown",
  ),

  // Sessions
  SESSION_NOT_FOUND: row(
    Code.NotFound,
    "never",
    "No session of this id exists, or it is not yours.",
    "List the sessions and use an id from there, or create one.",
  ),
  SESSION_EXISTS: row(
    Code.AlreadyExists,
    "never",
    "A session of this id exists, or existed and is still being removed.",
    "Choose another id, or use the session that is there.",
  ),
  SESSION_PAUSED: row(
    Code.FailedPrecondition,
    "after_delay",
    "The session is paused and runs no tools.",
    "Resume the session, then send the request again.",
  ),
  SESSION_NOT_ACTIVE: row(
    Code.FailedPrecondition,
    "never",
    "The session is not active, so this operation has nothing to work on.",
    "Read the session's state; resume, repair or re-create it.",
  ),
  SESSION_DESTROYING: row(Code.FailedPrecondition, "never", "The session is being destroyed.", "Create a new session."),
  INVALID_STATE: row(
    Code.FailedPrecondition,
    "never",
    "The session's state does not allow this operation; the message names both.",
    "Bring the session into a state that allows it, or repair it.",
  ),
  ROLLBACK_IN_PROGRESS: row(
    Code.FailedPrecondition,
    "after_delay",
    "The session is being rolled back at this moment.",
    "Wait for the rollback to end, then send the request again.",
  ),
  TOOLS_IN_FLIGHT: row(
    Code.FailedPrecondition,
    "after_delay",
    "Tool calls are running, and the operation needs them to have ended.",
    "Wait for them, cancel them, or ask for them to be killed.",
  ),
  PROCESSES_RUNNING: row(
    Code.FailedPrecondition,
    "never",
    "Launched processes are running, and the request said to refuse then.",
    "Stop the processes, or ask for them to be stopped.",
  ),
  MAX_SESSIONS_REACHED: row(
    Code.ResourceExhausted,
    "after_delay",
    "The host holds as many sessions as it is configured for.",
    "Destroy a session, raise maxSessions, or use another host.",
  ),
  SESSION_LIMIT_REACHED: row(
    Code.ResourceExhausted,
    "after_delay",
    "The provider's limit of concurrent sandboxes is reached.",
    "Destroy a sandbox that is no longer needed, then try again.",
  ),
  SANDBOX_LOST: row(
    Code.Aborted,
    "never",
    "The sandbox died under the call (killed, out of memory, or the machine went down).",
    "Read the session: its files are there under a new generation. Go on under a new call id.",
    "unknown",
  ),

  // Turns and snapshots
  SNAPSHOT_NOT_FOUND: row(
    Code.NotFound,
    "never",
    "The session has no snapshot of this id.",
    "List the snapshots and use an id from there.",
  ),
  SNAPSHOT_IN_USE: row(
    Code.FailedPrecondition,
    "never",
    "Something that still lives was made from this snapshot, or it is being sent to another host.",
    "Destroy what depends on it first; what is being sent can go once that is over.",
  ),
  SNAPSHOTS_NOT_AVAILABLE: row(
    Code.Unimplemented,
    "never",
    "The host's storage cannot make snapshots.",
    "Use a host whose storage is zfs.",
  ),
  SNAPSHOT_SPACE_EXHAUSTED: row(
    Code.ResourceExhausted,
    "never",
    "The session's files and snapshots together use up its outer quota.",
    "Delete snapshots, or create the session with a larger quota.",
  ),
  STREAM_DAMAGED: row(
    Code.DataLoss,
    "never",
    "The stream of a snapshot ends early, was changed on its way, or is not of the snapshot that was announced; nothing of it was kept.",
    "Send the snapshot again; if a stored copy fails again, use another copy.",
  ),

  // Templates
  TEMPLATE_NOT_FOUND: row(
    Code.NotFound,
    "never",
    "No template of this name and version is on the host.",
    "List the templates; import or build the one you need (`turnbox template`).",
  ),
  TEMPLATE_IN_USE: row(
    Code.FailedPrecondition,
    "never",
    "Sessions were made from this template and still live.",
    "Destroy those sessions first.",
  ),
  TEMPLATE_INVALID: row(
    Code.InvalidArgument,
    "never",
    "The archive or directory is not a usable root filesystem; the message says why.",
    "Correct the archive and import it again.",
  ),

  // Tools and processes
  TOOL_NOT_FOUND: row(Code.NotFound, "never", "The catalog has no tool of this name.", "Use a name from ListTools."),
  TOOL_CALL_NOT_FOUND: row(
    Code.NotFound,
    "never",
    "No tool call of this id is known, or it is no longer kept.",
    "Use the id of a call of this session.",
  ),
  PROCESS_NOT_FOUND: row(
    Code.NotFound,
    "never",
    "No process of this id exists in the session's present generation.",
    "List the processes and use an id from there.",
  ),
  FILE_NOT_FOUND: row(
    Code.NotFound,
    "never",
    "Nothing is at this path.",
    "List the directory and use a path from there.",
  ),
  STREAM_STALLED: row(
    Code.Aborted,
    "after_delay",
    "The other side of a stream took or sent nothing for a minute, and what served it was given to others.",
    "Read again from the offset that was reached; send an upload again, as a whole.",
  ),
  FILE_CHANGED: row(
    Code.Aborted,
    "never",
    "The file changed while it was read over a connection that broke, so that the rest belongs to other content.",
    "Read the file again from its beginning.",
  ),
  PATH_REFUSED: row(
    Code.InvalidArgument,
    "never",
    "The path leads to something the file tools do not touch (a device, /proc, /sys, outside of the root).",
    "Use a regular path inside the sandbox.",
  ),

  // Space and machines
  QUOTA_EXCEEDED: row(
    Code.ResourceExhausted,
    "never",
    "The session's files use up its allowance.",
    "Delete files in the session, or create one with a larger quota.",
  ),
  POOL_FULL: row(
    Code.ResourceExhausted,
    "after_delay",
    "The host's pool is at its critical threshold: reads, exec and destroy go on, new sessions and snapshots do not.",
    "Destroy sessions or snapshots, or give the pool more space.",
  ),
  DATA_DISK_FULL: row(
    Code.ResourceExhausted,
    "after_delay",
    "The disk of the host's data directory is down to the reserve of its records: reads and destroy go on, calls that change something do not.",
    "Free space on that disk, or destroy sessions; `dataReserve` sets the reserve.",
  ),
  STORAGE_UNAVAILABLE: row(
    Code.Unavailable,
    "after_delay",
    "The storage does not answer or is not usable; the message says what was tried.",
    "Run `turnbox doctor`; the host mends what it can by itself.",
    "unknown",
  ),
  RUNTIME_UNAVAILABLE: row(
    Code.Unavailable,
    "after_delay",
    "The sandbox runtime is missing or does not work; nothing is ever run without it.",
    "Run `turnbox doctor`, install what it names, and start the host again.",
  ),
  COMMAND_MISSING: row(
    Code.Unavailable,
    "never",
    "A program that the host needs is not installed.",
    "Run `turnbox doctor`; it says which package brings it.",
  ),
  COMMAND_OUTCOME_UNKNOWN: row(
    Code.Unavailable,
    "if_idempotent",
    "A system command was ended by a signal or its deadline; its effect is not known.",
    "The host looks at the state before it tries again; send the request again under the same key.",
    "unknown",
  ),

  ...OBJECT_REASONS,
  ...ARCHIVE_REASONS,

  // Fleet
  SANDBOX_NOT_FOUND: row(
    Code.NotFound,
    "never",
    "No sandbox of this id or name exists, or it is not yours.",
    "List the sandboxes and use an id from there, or create one.",
  ),
  SANDBOX_EXISTS: row(
    Code.AlreadyExists,
    "never",
    "A sandbox of this name exists; the detail carries its id.",
    "Use the sandbox that is there, or choose another name.",
  ),
  INSTANCE_NOT_FOUND: row(
    Code.NotFound,
    "never",
    "The fleet has no instance of this id.",
    "List the instances and use an id from there.",
  ),
  FLEET_EXHAUSTED: row(
    Code.ResourceExhausted,
    "after_delay",
    "No instance has room and no further one can be had in time.",
    "Wait for the given time, destroy sandboxes, or raise the fleet's limits.",
  ),
  HOST_UNREACHABLE: row(
    Code.Unavailable,
    "if_idempotent",
    "The sandbox-host did not answer.",
    "Send the request again under the same idempotency key.",
    "unknown",
  ),
  HOST_CORDONED: row(
    Code.Unavailable,
    "after_delay",
    "The host has been told by its fleet to take no new sessions.",
    "Use another host, or send the request again when the host has been opened.",
  ),
  STORE_UNAVAILABLE: row(
    Code.Unavailable,
    "after_delay",
    "The fleet's store (PostgreSQL) does not answer or cannot be written; the message says what was tried.",
    "Wait and send the request again; see that the database server runs and can be reached from the orchestrator.",
    "unknown",
  ),
  EPOCH_STALE: row(
    Code.FailedPrecondition,
    "never",
    "The command comes from an orchestrator that no longer leads the fleet.",
    "Send the command through the present leader.",
  ),

  ...CLIENT_REASONS,

  // The home and the command line
  CONFIG_INVALID: row(
    Code.FailedPrecondition,
    "never",
    "The configuration breaks a rule; the message names each key.",
    "Correct config.json or the TURNBOX_* variable that is named.",
  ),
  HOME_IN_USE: row(
    Code.FailedPrecondition,
    "never",
    "Another server runs on this home.",
    "Use the server that runs, stop it with `turnbox down`, or choose another TURNBOX_HOME.",
  ),
  HOME_VERSION_UNSUPPORTED: row(
    Code.FailedPrecondition,
    "never",
    "The home was written by another version of Turnbox.",
    "Run the version that wrote it, or choose another TURNBOX_HOME.",
  ),
  PORT_IN_USE: row(
    Code.FailedPrecondition,
    "never",
    "Another program listens on the port.",
    "Choose another port with TURNBOX_PORT, or stop the other program.",
  ),
  SERVER_UNREACHABLE: row(
    Code.Unavailable,
    "after_delay",
    "No server answers at the address.",
    "Start one with `npm start` (or `turnbox up`), or give its address with --url.",
  ),
} as const satisfies Record<string, ReasonRow>;

/** The closed set of reasons. */
export type Reason = keyof typeof ERROR_TABLE;

/** Whether `value` is a reason of the table; a detail from a newer server may carry one that is not. */
export function isReason(value: string): value is Reason {
  return Object.hasOwn(ERROR_TABLE, value);
}
