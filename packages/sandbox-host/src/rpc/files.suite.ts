import type { Client } from "@connectrpc/connect";
import { FileService, type ReadFileResponse } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { startTestHost, type TestHost } from "../compose.suite.ts";
import { accessTo } from "./client.suite.ts";
import type { Session } from "../session/session.ts";

/** A host with a client of its files. */
export interface FilesRig extends AsyncDisposable {
  readonly test: TestHost;
  /** A new session with empty files. */
  open(): Promise<SessionRig>;
}

export interface SessionRig {
  readonly session: Session;
  readonly sessionId: string;
  readonly client: Client<typeof FileService>;
  /** Where the session's root is on this machine. */
  readonly root: string;
}

export async function startFilesRig(): Promise<FilesRig> {
  const test = await startTestHost();
  const client = accessTo(test.host).client(FileService);
  let sessions = 0;
  return {
    test,
    open: async () => {
      sessions += 1;
      const sessionId = `s${sessions}`;
      const session = await test.create({ sessionId });
      const { path: root } = await test.storage.mountHead(session.head, { signal: new AbortController().signal });
      return { session, sessionId, client, root };
    },
    [Symbol.asyncDispose]: () => test[Symbol.asyncDispose](),
  };
}

export async function collect(stream: AsyncIterable<ReadFileResponse>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const { data } of stream) pieces.push(data);
  return Buffer.concat(pieces);
}

/** A client stream of a header and a body. */
export async function* uploadOf<Header>(header: Header, body: Uint8Array, pieceBytes = 64 * 1024) {
  yield { part: { case: "header", value: header } as const };
  for (let start = 0; start < body.length; start += pieceBytes)
    yield { part: { case: "data", value: new Uint8Array(body.subarray(start, start + pieceBytes)) } as const };
}
