import type { Client } from "@connectrpc/connect";
import { FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import type { TestHost } from "./host.ts";
import { hostClient } from "./host-client.ts";

export const fileClient = (host: TestHost): Client<typeof FileService> => hostClient(host, FileService);

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
