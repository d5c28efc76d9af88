import { type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from "node:http2";
import { type Clock, systemClock } from "@turnbox/core";
import { Http2Line, type Http2LineTimes } from "./http2-line.ts";
import { connectHttp2Socket } from "./http2-socket.ts";

/**
 * What a service may have under way to this side on one call, and on a whole connection, before it is read. Node's own 64 KiB
 * are less than one answer of a stream, which then waits for a round trip in its middle.
 */
const STREAM_WINDOW_BYTES = 2 * 1024 * 1024;
const SESSION_WINDOW_BYTES = 16 * 1024 * 1024;
/** Node's own 16 KiB hand the bytes of a stream over in four times as many pieces as come from the network. */
const FRAME_BYTES = 256 * 1024;

/** When a connection that is not made, or no longer answers, is given up. */
export interface Http2Times extends Http2LineTimes {
  readonly connectTimeoutMs: number;
}

/**
 * The connections to one service: the present one, made by the first call and again after a loss, and earlier ones that a
 * service which goes away lets come to their end. Calls at the same time share the making of one, and its failure.
 */
export class Http2Lines implements Disposable {
  readonly authority: string;
  readonly #url: URL;
  readonly #times: Http2Times;
  readonly #clock: Clock;
  readonly #lines = new Set<Http2Line>();
  #present: Http2Line | undefined;
  #connecting: Promise<Http2Line> | undefined;
  #isDisposed = false;

  constructor(url: string, times: Http2Times, clock: Clock = systemClock) {
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
      const line = await this.#ready();
      // It may have been lost between the two.
      if (line.isUsable) return line.request({ ...headers, ":method": method, ":path": path });
    }
  }

  notifyResponseByteRead(stream: ClientHttp2Stream): void {
    for (const line of this.#lines) if (line.session === stream.session) line.heard();
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true;
    for (const line of this.#lines) line.end(new Error("the connection is closed"));
  }

  async #ready(): Promise<Http2Line> {
    const present = this.#present;
    if (present?.isUsable === true && (await present.verified())) return present;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return await this.#connecting;
  }

  async #connect(): Promise<Http2Line> {
    if (this.#isDisposed) throw new Error("the connection is closed");
    const session = connect(this.authority, {
      settings: { initialWindowSize: STREAM_WINDOW_BYTES, maxFrameSize: FRAME_BYTES, enablePush: false },
      createConnection: () => connectHttp2Socket(this.#url, { timeoutMs: this.#times.connectTimeoutMs }),
    });
    const line = new Http2Line(session, { ...this.#times, clock: this.#clock });
    this.#lines.add(line);
    session.once("close", () => {
      this.#lines.delete(line);
    });
    await line.opened;
    session.setLocalWindowSize(SESSION_WINDOW_BYTES);
    this.#present = line;
    return line;
  }
}
