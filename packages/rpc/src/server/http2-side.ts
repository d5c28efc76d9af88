import { createServer, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import type { ProtocolSide, SideOptions } from "./http1-side.ts";
import type { ListenLimits } from "./listen-limits.ts";

/** What a sender may have under way on one stream, and on a whole connection, before it is read. */
const STREAM_WINDOW_BYTES = 1024 * 1024;
const SESSION_WINDOW_BYTES = 8 * 1024 * 1024;

export function createHttp2Side({ handler, limits, prove }: SideOptions): ProtocolSide {
  const sessions = new Set<ServerHttp2Session>();
  /** The socket whose session is being made; the session itself only shows a proxy of it. */
  let accepting: Socket | undefined;
  const server = createServer(
    {
      maxSessionMemory: limits.maxSessionMemoryMib,
      maxSessionInvalidFrames: limits.maxSessionInvalidFrames,
      maxSessionRejectedStreams: limits.maxSessionRejectedStreams,
      maxHeaderListPairs: limits.maxHeaderPairs,
      settings: {
        maxConcurrentStreams: limits.maxConcurrentStreams,
        maxHeaderListSize: limits.maxHeaderBytes,
        initialWindowSize: STREAM_WINDOW_BYTES,
        enablePush: false,
      },
    },
    handler,
  );
  // Errors of a session close it, and the close is what counts.
  server.on("sessionError", () => undefined);
  server.on("session", (session) => {
    const socket = accepting;
    sessions.add(session);
    session.once("stream", () => {
      if (socket !== undefined) prove(socket);
    });
    session.setLocalWindowSize(SESSION_WINDOW_BYTES);
    const stop = watchSession(session, limits);
    session.once("close", () => {
      stop();
      sessions.delete(session);
    });
  });

  return {
    accept: (socket) => {
      accepting = socket;
      server.emit("connection", socket);
      accepting = undefined;
    },
    drain: () => {
      // Tells the peer to open no further streams; the session closes after the last one.
      for (const session of sessions) session.close();
    },
    dispose: () => {
      for (const session of sessions) session.destroy();
    },
  };
}

/** Closes a session that is idle or whose peer no longer answers; open streams, however quiet, keep it. */
function watchSession(session: ServerHttp2Session, limits: ListenLimits): () => void {
  let streams = 0;
  let idleSinceMs = performance.now();
  let awaited = false;
  session.on("stream", (stream) => {
    streams += 1;
    stream.once("close", () => {
      streams -= 1;
      idleSinceMs = performance.now();
    });
  });
  const timer = setInterval(() => {
    if (session.destroyed) return;
    if (streams === 0 && performance.now() - idleSinceMs >= limits.idleSessionMs) {
      session.close();
    } else if (awaited) {
      session.destroy();
    } else {
      awaited = session.ping(() => {
        awaited = false;
      });
    }
  }, limits.pingMs);
  timer.unref();
  return () => {
    clearInterval(timer);
  };
}
