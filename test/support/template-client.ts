import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { fromConnectError, loadOrCreateHomeToken } from "@turnbox/core";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { uploadOf } from "./file-client.ts";
import type { TestHost } from "./host.ts";

/** Imports a template from an archive; answers with "imported", or with the reason of the refusal. */
export async function importTemplate(host: TestHost, name: string, archive: Buffer): Promise<string> {
  const token = loadOrCreateHomeToken(join(host.home, "token")).reveal();
  const transport = createConnectTransport({ baseUrl: host.url, httpVersion: "2" });
  const client = createClient(HostService, transport);
  const headers = { authorization: `Bearer ${token}` };
  try {
    await client.importTemplate(uploadOf({ idempotencyKey: randomUUID(), name }, archive), { headers });
    return "imported";
  } catch (thrown) {
    return fromConnectError(thrown).reason;
  }
}
