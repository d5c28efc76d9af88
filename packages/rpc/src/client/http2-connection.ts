import { type ClientHttp2Session, type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from "node:http2";
import { type Clock, raceTime, setAlarm } from "@turnbox/core";

export interface PingTimes {
  /** How long a connection with calls on it may be silent before a ping is sent. From 1 s up in production. */
  readonly pingIntervalMs: number;
  /** How long the answer to a ping may take before the connection is ended. */
  readonly pingTimeoutMs: number;
}

/**
 * One HTTP/2 connection to a service. While calls are on it, silence is followed by a ping, and a ping without an answer ends
 * the connection and its calls. An idle connection is not watched: `verify` is called before it is used again.
 */
export class Http2Connection {
  readonly session: ClientHttp2Session;
  /** Settles when calls can be made on it, or cannot. */
  readonly opened: Promise<void>;
  readonly #times: PingTimes;
  readonly #clock: Clock;
  #lastReceivedMs: number;
  #streams = 0;
  #endWatch: () => void = () => undefined;
  #ping: Promise<boolean> | undefined;

  constructor(session: ClientHttp2Session, { clock, ...times }: PingTimes & { readonly clock: Clock }) {
    this.session = session;
    this.#times = times;
    this.#clock = clock;
    this.#lastReceivedMs = clock.monotonicMs();
    // An error without a listener would end the process. The streams of the session report the loss to their calls.
    session.on("error", () => undefined);
    session.once("goaway", () => {
      session.close();
    });
    session.once("close", () => {
      this.#endWatch();
    });
    this.opened = new Promise((resolve, reject) => {
      session.once("connect", () => {
        this.noteReceived();
        session.unref();
        resolve();
      });
      session.once("error", reject);
      session.once("close", () => {
        reject(new Error("the connection was closed"));
      });
    });
  }

  get isUsable(): boolean {
    return !this.session.closed && !this.session.destroyed;
  }

  request(headers: OutgoingHttpHeaders): ClientHttp2Stream {
    const stream = this.session.request(headers);
    this.#streams += 1;
    if (this.#streams === 1) this.#begin();
    let isAnswered = false;
    stream.once("response", () => {
      isAnswered = true;
      this.noteReceived();
    });
    stream.once("close", () => {
      if (!isAnswered && stream.rstCode === constants.NGHTTP2_NO_ERROR) stream.emit("error", closedBeforeItsEnd());
      this.#streams -= 1;
      if (this.#streams === 0) this.#idle();
    });
    return stream;
  }

  noteReceived(): void {
    this.#lastReceivedMs = this.#clock.monotonicMs();
  }

  /** Whether the other side is there, as far as is known or a ping shows. Ends the connection if it is not. */
  async verify(): Promise<boolean> {
    return this.#silentMs() <= this.#times.pingIntervalMs || (await this.#sharedPing());
  }

  end(error: Error): void {
    if (!this.session.destroyed) this.session.destroy(error, constants.NGHTTP2_CANCEL);
  }

  #silentMs(): number {
    return this.#clock.monotonicMs() - this.#lastReceivedMs;
  }

  #begin(): void {
    this.session.ref();
    this.#watch();
  }

  #idle(): void {
    this.#endWatch();
    if (!this.session.destroyed) this.session.unref();
  }

  /** Checks each time the connection may have been silent for too long, until it is lost or idle. */
  #watch(): void {
    let isOver = false;
    const check = async (): Promise<void> => {
      if (this.#silentMs() >= this.#times.pingIntervalMs && !(await this.#sharedPing())) return;
      if (!isOver) wait();
    };
    const wait = (): void => {
      turnOff = setAlarm(this.#clock, this.#times.pingIntervalMs - this.#silentMs(), () => {
        check().catch((thrown: unknown) => {
          this.end(thrown instanceof Error ? thrown : new Error(String(thrown)));
        });
      });
    };
    let turnOff = (): void => undefined;
    this.#endWatch = () => {
      isOver = true;
      turnOff();
    };
    wait();
  }

  async #sharedPing(): Promise<boolean> {
    this.#ping ??= this.#pingOnce().finally(() => {
      this.#ping = undefined;
    });
    return await this.#ping;
  }

  async #pingOnce(): Promise<boolean> {
    if (this.session.destroyed) return false;
    const answered = Promise.withResolvers<boolean>();
    this.session.ping((error) => {
      answered.resolve(error === null);
    });
    const end = await raceTime(answered.promise, { clock: this.#clock, atMostMs: this.#times.pingTimeoutMs });
    const isThere = end === "ended" && (await answered.promise);
    if (isThere) this.noteReceived();
    else this.end(Object.assign(new Error("the connection no longer answers"), { code: "ETIMEDOUT" }));
    return isThere;
  }
}

/** Node closes a stream that is reset without an error in silence, and Connect waits for an error. */
function closedBeforeItsEnd(): Error {
  return Object.assign(new Error("the stream was closed before it was answered"), {
    code: "ERR_STREAM_PREMATURE_CLOSE",
  });
}
