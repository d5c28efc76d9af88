import { invalidArgument, parseSessionId, type SessionId } from "@turnbox/core";
import { parseInstanceId } from "../provisioner/instance-id.ts";

/** What a fleet's sandbox id says: the instance that holds the session, and the session's id there. */
export interface FleetId {
  readonly instanceId: string;
  readonly sessionId: SessionId;
}

const PREFIX = "fleet";

/** `fleet:<instance>:<session>`: the id alone routes, so there is no map that could be lost. */
export function formatFleetId(id: { readonly instanceId: string; readonly sessionId: string }): string {
  return `${PREFIX}:${parseInstanceId(id.instanceId)}:${parseSessionId(id.sessionId)}`;
}

/** The way back; anything else is `INVALID_ARGUMENT` on `sandbox_id`. */
export function parseFleetId(raw: string, field = "sandbox_id"): FleetId {
  const [prefix, instanceId, sessionId, ...rest] = raw.split(":");
  if (prefix !== PREFIX || instanceId === undefined || sessionId === undefined || rest.length > 0) {
    throw invalidArgument(field, "must have the form fleet:<instance>:<session>");
  }
  return { instanceId: parseInstanceId(instanceId, field), sessionId: parseSessionId(sessionId, field) };
}
