import { type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from "node:http2";
import { connect as connectPlain, type Socket } from "node:net";
import { connect as connectSecure } from "node:tls";
import { type Clock, systemClock } from "@turnbox/core";
import { Http2Connection, type PingTimes } from "./http2-connection.ts";

/**
 * What a service may have under way to this side on one call, and on a whole connection, before it is read. Node's own 64 KiB
 * are less than one answer of a stream, which then waits for a round trip in its middle.
 */
const STREAM_WINDOW_BYTES = 2 * 1024 * 1024;
const SESSION_WINDOW_BYTES = 16 * 1024 * 1024;
/** Node's own 16 KiB hand the bytes of a stream over in four times as many pieces as come from the network. */
const FRAME_BYTES = 256 * 1024;

/** When a connection that is not made, or no longer answers, is given up. */
export interface ConnectionTimes extends PingTimes {
  /** How long the connection may take to be made, TLS included. */
  readonly connectTimeoutMs: number;
}

/**
 * The connections to one service: the present one, made by the first call and again after a loss, and earlier ones that a
 * service which goes away lets come to their end. Calls at the same time share the making of one, and its failure. It stands
 * in for Connect's own session manager, which leaves the error of a connection that it drops while it is being made without
 * a listener, so that the error ends the process.
 */
export class ConnectionManager implements Disposable {
  readonly authority: string;
  readonly #url: URL;
  readonly #times: ConnectionTimes;
  readonly #clock: Clock;
  readonly #connections = new Set<Http2Connection>();
  #present: Http2Connection | undefined;
  #connecting: Promise<Http2Connection> | undefined;
  #isDisposed = false;

  constructor(url: string, times: ConnectionTimes, clock: Clock = systemClock) {
    this.#url = new URL(url);
    this.authority = this.#url.origin;
    this.#times = times;
    this.#clock = clock;
  }

  /** Whether the next call goes over the connection that the last one used. */
  connection(): "kept" | "new" {
    return this.#present?.isUsable === true ? "kept" : "new";
  }

  async request(method: string, path: string, headers: OutgoingHttpHeaders): Promise<ClientHttp2Stream> {
    for (;;) {
      const connection = await this.#ready();
      // It may have been lost between the two.
      if (connection.isUsable) return connection.request({ ...headers, ":method": method, ":path": path });
    }
  }

  notifyResponseByteRead(stream: ClientHttp2Stream): void {
    for (const connection of this.#connections) if (connection.session === stream.session) connection.noteReceived();
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    for (const connection of this.#connections) connection.end(new Error("the connection is closed"));
  }

  async #ready(): Promise<Http2Connection> {
    const present = this.#present;
    if (present?.isUsable === true && (await present.verify())) return present;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return await this.#connecting;
  }

  async #connect(): Promise<Http2Connection> {
    if (this.#isDisposed) throw new Error("the connection is closed");
    const session = connect(this.authority, {
      settings: { initialWindowSize: STREAM_WINDOW_BYTES, maxFrameSize: FRAME_BYTES, enablePush: false },
      createConnection: () => connectSocket(this.#url, { timeoutMs: this.#times.connectTimeoutMs }),
    });
    const connection = new Http2Connection(session, { ...this.#times, clock: this.#clock });
    this.#connections.add(connection);
    session.once("close", () => {
      this.#connections.delete(connection);
    });
    await connection.opened;
    session.setLocalWindowSize(SESSION_WINDOW_BYTES);
    this.#present = connection;
    return connection;
  }
}

/** Connects for HTTP/2. A connection that is not made in time fails, and nothing has been sent over it. */
function connectSocket(url: URL, { timeoutMs }: { readonly timeoutMs: number }): Socket {
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
