import { invalidArgument, SandboxError } from "@turnbox/core";
import type { Store } from "../../store/store.ts";
import type { ControlCall } from "../sandbox-control.ts";
import { formatFleetId } from "./fleet-id.ts";

/** The id of the tenant's sandbox that has this name, or whose id has this session part. */
export async function idByName(store: Store, name: string, call: ControlCall): Promise<string> {
  const [row, other] = await store.findSandboxes({ tenant: call.tenant, name }, call);
  if (other !== undefined) throw invalidArgument("name", "is the name of one sandbox and part of the id of another");
  if (row?.instanceId === undefined) throw new SandboxError("SANDBOX_NOT_FOUND", `there is no sandbox ${name}`);
  return formatFleetId({ instanceId: row.instanceId, sessionId: row.sessionId });
}
