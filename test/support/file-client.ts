import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { loadOrCreateHomeToken } from "@turnbox/core";
import { FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import type { TestHost } from "./host.ts";

/** A client of the host's files over a connection of its own, at the address that the host has now. */
export function fileClient(host: TestHost): Client<typeof FileService> {
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
  return createClient(FileService, transport);
}

/** A client stream of a header and a body. */
export async function* uploadOf<Header>(header: Header, body: Uint8Array, pieceBytes = 64 * 1024) {
  yield { part: { case: "header", value: header } as const };
  for (let start = 0; start < body.length; start += pieceBytes)
    yield { part: { case: "data", value: new Uint8Array(body.subarray(start, start + pieceBytes)) } as const };
}

/** All bytes of a stream. */
export async function bytesOf(stream: AsyncIterable<{ readonly data: Uint8Array }>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const { data } of stream) pieces.push(data);
  return Buffer.concat(pieces);
}
