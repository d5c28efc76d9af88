import { randomUUID } from "node:crypto";
import { Readable, Writable } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { createMcpSession, type McpSessionSpec } from "./mcp-session.ts";

/** A file that a model writes travels as one message. */
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;

export interface StdioSpec extends McpSessionSpec {
  readonly stdin: AsyncIterable<string | Uint8Array>;
  /** Carries the protocol and nothing else. */
  readonly stdout: { write(bytes: Uint8Array, done: (error?: Error | null) => void): unknown };
  readonly signal: AbortSignal;
}

/** Serves one session on standard input and output, until the input ends or the signal comes. */
export async function serveStdio(spec: StdioSpec): Promise<void> {
  const input = Readable.from(spec.stdin, { objectMode: false });
  const output = new Writable({
    write: (chunk: Uint8Array, _, done) => {
      spec.stdout.write(chunk, done);
    },
  });
  const over = Promise.withResolvers<void>();
  const end = (): void => {
    over.resolve();
  };
  // A client that dies takes both streams with it.
  for (const event of ["end", "close", "error"]) input.once(event, end);
  output.once("error", end);
  spec.signal.addEventListener("abort", end, { once: true });
  if (spec.signal.aborted) end();
  await using session = createMcpSession(spec, randomUUID());
  session.mcp.server.onclose = end;
  await session.mcp.connect(new StdioServerTransport(input, output, { maxBufferSize: MAX_MESSAGE_BYTES }));
  await over.promise;
}
