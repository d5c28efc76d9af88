import type { Socket } from "node:net";

export interface ConnectionLimits {
  readonly maxConnections: number;
  readonly maxConnectionsPerPeer: number;
  /** How many may be open without having sent one whole request. */
  readonly maxUnproven: number;
}

/**
 * The open connections of a server. A connection is unproven until its first request has arrived; if there are too many
 * of those, the oldest is closed, so that peers that open connections and say nothing keep no other peers out.
 */
export interface ConnectionTable {
  /** False if the connection is refused; it is closed then. */
  add(socket: Socket): boolean;
  prove(socket: Socket): void;
  /** Closes every connection on which no request has arrived. */
  destroyUnproven(): void;
  destroyAll(): void;
  readonly size: number;
}

export function createConnectionTable(limits: ConnectionLimits): ConnectionTable {
  const open = new Set<Socket>();
  const unproven = new Set<Socket>();
  const peers = new Map<string, number>();

  const remove = (socket: Socket, peer: string): void => {
    open.delete(socket);
    unproven.delete(socket);
    const left = (peers.get(peer) ?? 1) - 1;
    if (left > 0) peers.set(peer, left);
    else peers.delete(peer);
  };

  return {
    add: (socket) => {
      const peer = socket.remoteAddress ?? "";
      if (unproven.size >= limits.maxUnproven || open.size >= limits.maxConnections) evictOldest(unproven, open);
      const ofPeer = peers.get(peer) ?? 0;
      if (open.size >= limits.maxConnections || ofPeer >= limits.maxConnectionsPerPeer) {
        socket.destroy();
        return false;
      }
      open.add(socket);
      unproven.add(socket);
      peers.set(peer, ofPeer + 1);
      socket.once("close", () => {
        remove(socket, peer);
      });
      return true;
    },
    prove: (socket) => {
      unproven.delete(socket);
    },
    destroyUnproven: () => {
      for (const socket of unproven) socket.destroy();
    },
    destroyAll: () => {
      for (const socket of open) socket.destroy();
    },
    get size() {
      return open.size;
    },
  };
}

/** Sets keep the order of insertion: the first is the oldest. Its place is free at once, not when its close is reported. */
function evictOldest(unproven: Set<Socket>, open: Set<Socket>): void {
  for (const socket of unproven) {
    unproven.delete(socket);
    open.delete(socket);
    socket.destroy();
    return;
  }
}
