import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { DescService } from "@bufbuild/protobuf";
import { loadOrCreateHomeToken } from "@turnbox/core";
import type { TestHost } from "./host.ts";

/** A client of one of the host's services over a connection of its own, at the address that the host has now. */
export function hostClient<S extends DescService>(host: Pick<TestHost, "home" | "url">, service: S): Client<S> {
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
  return createClient(service, transport);
}
