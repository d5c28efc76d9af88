import type { TurnboxClients } from "../client.ts";
import type { Instance } from "./fleet-types.ts";
import { toInstance } from "./to-instance.ts";

const PAGE_SIZE = 1000;

/** Every instance of the server's fleet, by id. */
export async function listInstances(
  server: TurnboxClients,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly Instance[]> {
  const instances: Instance[] = [];
  let pageToken = "";
  do {
    const page = await server.fleet.listInstances({ page: { pageSize: PAGE_SIZE, pageToken } }, { signal });
    instances.push(...page.instances.map(toInstance));
    pageToken = page.page?.nextPageToken ?? "";
  } while (pageToken !== "");
  return instances;
}
