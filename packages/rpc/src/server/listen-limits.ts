import type { ConnectionLimits } from "./connection-table.ts";

/** The limits of one listening server. */
export interface ListenLimits extends ConnectionLimits {
  /** How long a connection may take to show which protocol it speaks, or to finish its TLS handshake. */
  readonly firstBytesMs: number;
  readonly maxConcurrentStreams: number;
  readonly maxHeaderBytes: number;
  readonly maxHeaderPairs: number;
  /** Memory of one HTTP/2 session, in MiB. */
  readonly maxSessionMemoryMib: number;
  readonly maxSessionInvalidFrames: number;
  readonly maxSessionRejectedStreams: number;
  /** How long the headers of an HTTP/1.1 request may take. Bodies are limited by the handler, which knows the method. */
  readonly headersMs: number;
  /** How long an HTTP/1.1 connection is kept between requests. */
  readonly keepAliveMs: number;
  /** How long an HTTP/2 connection without open streams is kept. */
  readonly idleSessionMs: number;
  /** How often an HTTP/2 peer is asked whether it is still there; it is given as long again to answer. */
  readonly pingMs: number;
}

export const DEFAULT_LISTEN_LIMITS: ListenLimits = {
  maxConnections: 4096,
  maxConnectionsPerPeer: 2048,
  maxUnproven: 512,
  firstBytesMs: 10_000,
  maxConcurrentStreams: 256,
  maxHeaderBytes: 16 * 1024,
  maxHeaderPairs: 128,
  maxSessionMemoryMib: 32,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  headersMs: 10_000,
  keepAliveMs: 60_000,
  idleSessionMs: 15 * 60_000,
  pingMs: 15_000,
};
