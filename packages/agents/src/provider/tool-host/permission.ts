import { SandboxError } from "@turnbox/client";

/** What an agent may do without a question. */
export type PermissionMode = "approve-all" | "approve-reads" | "deny-all";

export const PERMISSION_MODES: readonly PermissionMode[] = ["approve-all", "approve-reads", "deny-all"];
export const DEFAULT_PERMISSION_MODE: PermissionMode = "approve-reads";

/** What a tool host does for an agent under a permission. */
export type PermissionOperation =
  | "fs/read_text_file"
  | "fs/write_text_file"
  | "terminal/create"
  | "session/request_permission";

export const PERMISSION_OPERATIONS: readonly PermissionOperation[] = [
  "fs/read_text_file",
  "fs/write_text_file",
  "terminal/create",
  "session/request_permission",
];

/** The answer to an agent that asks; `pending` leaves it to a person or to the client. */
export type PermissionDecision = "pending" | "allow-once" | "allow-always" | "reject-once" | "reject-always";

export const PERMISSION_DECISIONS: readonly PermissionDecision[] = [
  "pending",
  "allow-once",
  "allow-always",
  "reject-once",
  "reject-always",
];

/** A decision, and whether a question is needed. */
export interface PermissionVerdict {
  readonly decision: PermissionDecision;
  readonly needsInteraction: boolean;
}

/** What an agent asks to be allowed, as far as the decision looks at it; a request of the Agent Client Protocol is one. */
export interface PermissionRequest {
  readonly toolCall: {
    /** `read` and `search` read; every other kind may change something. */
    readonly kind?: string | null | undefined;
    readonly locations?: readonly { readonly path: string }[] | null | undefined;
  };
}

/** Kinds of tool calls that look at files and change nothing. */
const READING: ReadonlySet<string> = new Set(["read", "search"]);
/** What `approve-reads` allows by itself; asking is no effect. */
const READ_OPERATIONS: ReadonlySet<PermissionOperation> = new Set(["fs/read_text_file", "session/request_permission"]);

/** Throws PERMISSION_DENIED where the mode does not allow the operation by itself. */
export function authorizeOperation(mode: PermissionMode, operation: PermissionOperation): void {
  if (mode === "approve-all") return;
  if (mode === "approve-reads" && READ_OPERATIONS.has(operation)) return;
  throw new SandboxError("PERMISSION_DENIED", `${operation} is not allowed under ${mode}`, {
    metadata: { operation, mode },
  });
}

/** What the mode says to a request; `location` is where its paths lead. */
export function decidePermission(
  mode: PermissionMode,
  request: PermissionRequest,
  location: "inside" | "outside",
): PermissionVerdict {
  if (location === "outside" || mode === "deny-all") return { decision: "reject-once", needsInteraction: false };
  if (mode === "approve-all" || READING.has(request.toolCall.kind ?? ""))
    return { decision: "allow-once", needsInteraction: false };
  return { decision: "pending", needsInteraction: true };
}
