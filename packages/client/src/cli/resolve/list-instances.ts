import type { Instance } from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import type { TurnboxClients } from "../../client.ts";
import { CALL_MS } from "../deadline.ts";

const PAGE_SIZE = 1000;

/** Every instance of the server's fleet, by id. */
export async function listInstances(
  server: TurnboxClients,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly Instance[]> {
  const instances: Instance[] = [];
  let pageToken = "";
  do {
    const page = await server.fleet.listInstances(
      { page: { pageSize: PAGE_SIZE, pageToken } },
      { signal, timeoutMs: CALL_MS.read },
    );
    instances.push(...page.instances);
    pageToken = page.page?.nextPageToken ?? "";
  } while (pageToken !== "");
  return instances;
}
