import type {
  PermissionOption,
  PermissionOptionKind,
  RequestPermissionRequest,
  RequestPermissionResponse,
  ToolCallUpdate,
} from "@agentclientprotocol/sdk";
import { hasReason, SandboxError } from "@turnbox/client";
import { orAborted } from "../launch/stop-gently.ts";
import type { PermissionDecision, PermissionOperation } from "../tool-host/permission.ts";
import type { ToolHost } from "../tool-host/tool-host.ts";
import { createGrants } from "./grants.ts";

/** Asks a person, or whatever stands in for one. The signal says that the answer is no longer wanted. */
export type AskPermission = (
  request: RequestPermissionRequest,
  options: { readonly signal: AbortSignal },
) => Promise<PermissionAnswer> | PermissionAnswer;
/** The possible answers to a request for a permission. */
export type PermissionAnswer = Exclude<PermissionDecision, "pending">;

/** Decides what an agent may do: by the tool host's mode, and if that leaves it open, by asking. */
export interface AgentPermissions {
  /** Answers an agent that asks; what it is allowed, it may do. */
  answer(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionResponse>;
  /** Lets an operation pass that the mode allows or that was granted; asks for it otherwise, or throws. */
  permit(wanted: WantedOperation, signal: AbortSignal): Promise<void>;
  endTurn(sessionId: string): void;
}

export interface WantedOperation {
  readonly sessionId: string;
  readonly operation: Exclude<PermissionOperation, "session/request_permission">;
  /** The file, or the directory of the command. */
  readonly path: string;
  readonly title: string;
}

const OPTIONS: readonly PermissionOption[] = [
  { optionId: "allow_once", name: "Allow once", kind: "allow_once" },
  { optionId: "allow_always", name: "Allow always", kind: "allow_always" },
  { optionId: "reject_once", name: "Reject once", kind: "reject_once" },
  { optionId: "reject_always", name: "Reject always", kind: "reject_always" },
];

/** Which options say what was decided, best first. None says more than the decision. */
const OPTIONS_OF: Record<PermissionDecision, readonly PermissionOptionKind[]> = {
  pending: [],
  "allow-once": ["allow_once"],
  "allow-always": ["allow_always", "allow_once"],
  "reject-once": ["reject_once"],
  "reject-always": ["reject_always", "reject_once"],
};

export function createAgentPermissions(toolHost: ToolHost, ask: AskPermission | undefined): AgentPermissions {
  const grants = createGrants();
  let asked = 0;

  const decide = async (request: RequestPermissionRequest, signal: AbortSignal): Promise<PermissionAnswer> => {
    const { decision, needsInteraction } = await toolHost.permissionDecision(request, { signal });
    if (!needsInteraction && decision !== "pending") return decision;
    // Without anything to ask, it is refused.
    return ask === undefined ? "reject-once" : await orAborted(Promise.resolve(ask(request, { signal })), signal);
  };

  const grant = async (request: RequestPermissionRequest, decision: PermissionAnswer): Promise<void> => {
    const { kind, locations } = request.toolCall;
    const paths = await Promise.all((locations ?? []).map(({ path }) => toolHost.resolvePath(path)));
    grants.add({ sessionId: request.sessionId, decision, kind, paths });
  };

  return {
    endTurn: grants.endTurn,
    answer: async (request, signal) => {
      try {
        const decision = await decide(request, signal);
        const option = OPTIONS_OF[decision]
          .map((kind) => request.options.find((one) => one.kind === kind))
          .find((one) => one !== undefined);
        if (option === undefined) return { outcome: { outcome: "cancelled" } };
        if (decision.startsWith("allow-")) await grant(request, decision);
        return { outcome: { outcome: "selected", optionId: option.optionId } };
      } catch (thrown) {
        if (signal.aborted || hasReason(thrown, "CANCELLED")) return { outcome: { outcome: "cancelled" } };
        throw thrown;
      }
    },
    permit: async ({ sessionId, operation, path, title }, signal) => {
      try {
        toolHost.authorize(operation);
      } catch (denied) {
        const resolved = await toolHost.resolvePath(path, { signal });
        if (toolHost.permissions === "deny-all") throw denied;
        if (grants.use({ sessionId, operation, path: resolved })) return;
        asked += 1;
        const toolCall: ToolCallUpdate = {
          toolCallId: `turnbox_${asked}`,
          title,
          kind: operation === "terminal/create" ? "execute" : "edit",
          locations: [{ path: resolved }],
        };
        const request: RequestPermissionRequest = { sessionId, toolCall, options: [...OPTIONS] };
        const decision = await decide(request, signal);
        if (!decision.startsWith("allow-")) throw SandboxError.from(denied);
        if (decision === "allow-always")
          await grant({ ...request, toolCall: { ...toolCall, locations: [] } }, decision);
      }
    },
  };
}
