import type { Socket } from "node:net";

/** How a connection without TLS begins decides what is spoken on it. */
export type HttpVersion = "http1" | "http2";

/** The first bytes of every HTTP/2 connection. No method of HTTP/1.1 begins like this. */
const HTTP2_PREFACE = Buffer.from("PRI");

/**
 * Looks at the first bytes of a connection and leaves them there. Resolves to undefined if the connection ends or
 * stays silent for too long; a silent one is closed. The socket is paused afterwards.
 */
export async function detectProtocol(socket: Socket, timeoutMs: number): Promise<HttpVersion | undefined> {
  return await new Promise((resolve) => {
    let seen = Buffer.alloc(0);
    const finish = (version: HttpVersion | undefined): void => {
      clearTimeout(timer);
      socket.off("data", onData);
      socket.off("close", onClose);
      socket.off("end", onClose);
      socket.pause();
      if (version !== undefined) socket.unshift(seen);
      resolve(version);
    };
    const onData = (bytes: Buffer): void => {
      seen = Buffer.concat([seen, bytes]);
      const compared = Math.min(seen.length, HTTP2_PREFACE.length);
      if (!seen.subarray(0, compared).equals(HTTP2_PREFACE.subarray(0, compared))) finish("http1");
      else if (compared === HTTP2_PREFACE.length) finish("http2");
    };
    const onClose = (): void => {
      socket.destroy();
      finish(undefined);
    };
    const timer = setTimeout(onClose, timeoutMs);
    socket.on("data", onData);
    socket.once("close", onClose);
    socket.once("end", onClose);
  });
}
