import { SandboxError } from "@turnbox/client";
import type { PermissionMode, PermissionOperation, PermissionRequest, PermissionVerdict } from "./permission.ts";

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
