import { type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from "node:http2";
import { type Clock, systemClock } from "@turnbox/core";
import { HostLine, type HostLineTimes } from "./host-line.ts";
import { connectHostSocket } from "./host-socket.ts";

/** When a connection that is not made, or no longer answers, is given up. */
export interface HostTransportTimes extends HostLineTimes {
  readonly connectTimeoutMs: number;
}

/**
 * The connections to one host: the present one, made by the first call and again after a loss, and earlier ones that a
 * host which goes away lets come to their end. Calls at the same time share the making of one, and its failure.
 */
export class HostLines implements Disposable {
  readonly authority: string;
  readonly #url: URL;
  readonly #times: HostTransportTimes;
  readonly #clock: Clock;
  readonly #lines = new Set<HostLine>();
  #present: HostLine | undefined;
  #connecting: Promise<HostLine> | undefined;
  #isDisposed = false;

  constructor(url: string, times: HostTransportTimes, clock: Clock = systemClock) {
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
    for (const line of this.#lines) line.end(new Error("the line to the host is closed"));
  }

  async #ready(): Promise<HostLine> {
    const present = this.#present;
    if (present?.isUsable === true && (await present.verified())) return present;
    this.#connecting ??= this.#connect().finally(() => {
      this.#connecting = undefined;
    });
    return await this.#connecting;
  }

  async #connect(): Promise<HostLine> {
    if (this.#isDisposed) throw new Error("the line to the host is closed");
    const session = connect(this.authority, {
      createConnection: () => connectHostSocket(this.#url, { timeoutMs: this.#times.connectTimeoutMs }),
    });
    const line = new HostLine(session, { ...this.#times, clock: this.#clock });
    this.#lines.add(line);
    session.once("close", () => {
      this.#lines.delete(line);
    });
    await line.opened;
    this.#present = line;
    return line;
  }
}
