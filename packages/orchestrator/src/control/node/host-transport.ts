import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";

/** One HTTP/2 connection to a host, opened by the first call and again after a loss. */
export interface HostTransport extends Disposable {
  readonly transport: Transport;
  /** Whether the next call goes over the connection that the last one used. */
  connection(): "kept" | "new";
}

const MAX_MESSAGE_BYTES = 16 * 1024 * 1024;
const PING_INTERVAL_MS = 10_000;
const PING_TIMEOUT_MS = 5000;

/**
 * Pings find a dead connection under an open stream, which has no deadline of its own. An idle connection is checked
 * before it is used again.
 */
export function createHostTransport(url: string): HostTransport {
  const sessionManager = new Http2SessionManager(url, {
    pingIntervalMs: PING_INTERVAL_MS,
    pingTimeoutMs: PING_TIMEOUT_MS,
  });
  return {
    transport: createConnectTransport({
      httpVersion: "2",
      baseUrl: url,
      sessionManager,
      readMaxBytes: MAX_MESSAGE_BYTES,
      writeMaxBytes: MAX_MESSAGE_BYTES,
      acceptCompression: [],
    }),
    connection: () => (["closed", "error", "connecting"].includes(sessionManager.state()) ? "new" : "kept"),
    [Symbol.dispose]: () => {
      sessionManager.abort();
    },
  };
}
