import { randomUUID } from "node:crypto";
import { fromConnectError } from "@turnbox/rpc/wire";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { uploadOf } from "./file-client.ts";
import type { TestHost } from "./host.ts";
import { hostClient } from "./host-client.ts";

/** Imports a template from an archive; answers with "imported", or with the reason of the refusal. */
export async function importTemplate(host: TestHost, name: string, archive: Buffer): Promise<string> {
  const client = hostClient(host, HostService);
  try {
    await client.importTemplate(uploadOf({ idempotencyKey: randomUUID(), name }, archive));
    return "imported";
  } catch (thrown) {
    return fromConnectError(thrown).reason;
  }
}
