import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectSecure } from "node:tls";

/** Connects for HTTP/2. A connection that is not made in time fails, and nothing has been sent over it. */
export function connectHttp2Socket(url: URL, { timeoutMs }: { readonly timeoutMs: number }): Socket {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const secure = url.protocol === "https:";
  const implied = secure ? 443 : 80;
  const to = { host, port: url.port === "" ? implied : Number(url.port) };
  const socket = secure ? connectSecure({ ...to, ALPNProtocols: ["h2"], servername: nameOf(host) }) : connectPlain(to);
  socket.setNoDelay(true);
  socket.setTimeout(timeoutMs, () => {
    const late = new Error(`no connection to ${url.host} within ${timeoutMs} ms`);
    socket.destroy(Object.assign(late, { code: "ERR_SOCKET_CONNECTION_TIMEOUT" }));
  });
  socket.once(secure ? "secureConnect" : "connect", () => {
    socket.setTimeout(0);
  });
  return socket;
}

/** Addresses are no server names in TLS; certificates are checked against them all the same. */
const nameOf = (host: string): string => (/^[\d.]+$|:/.test(host) ? "" : host);
