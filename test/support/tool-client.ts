import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { loadOrCreateHomeToken } from "@turnbox/core";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import type { TestHost } from "./host.ts";

/** A client of the host's tools over a connection of its own, at the address that the host has now. */
export function toolClient(host: TestHost): Client<typeof ToolService> {
  const token = loadOrCreateHomeToken(join(host.home, "token")).reveal();
  const transport = createConnectTransport({
    baseUrl: host.url,
    httpVersion: "2",
    interceptors: [
      (next) => async (request) => {
        request.header.set("authorization", `Bearer ${token}`);
        return await next(request);
      },
    ],
  });
  return createClient(ToolService, transport);
}
