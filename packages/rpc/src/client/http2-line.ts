import { type ClientHttp2Session, type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from "node:http2";
import { type Clock, raceTime, setAlarm } from "@turnbox/core";

export interface Http2LineTimes {
  /** How long a connection with calls on it may be silent before it is asked whether it is there. */
  readonly pingIntervalMs: number;
  readonly pingTimeoutMs: number;
}

/**
 * One HTTP/2 connection to a service. While calls are on it, silence is followed by a ping, and a ping without an answer ends
 * it and them. Whoever uses an idle one asks `verified` before.
 */
export class Http2Line {
  readonly session: ClientHttp2Session;
  /** Settles when calls can be made on it, or cannot. */
  readonly opened: Promise<void>;
  readonly #times: Http2LineTimes;
  readonly #clock: Clock;
  #lastHeardMs: number;
  #streams = 0;
  #endWatch: () => void = () => undefined;
  #ping: Promise<boolean> | undefined;

  constructor(session: ClientHttp2Session, { clock, ...times }: Http2LineTimes & { readonly clock: Clock }) {
    this.session = session;
    this.#times = times;
    this.#clock = clock;
    this.#lastHeardMs = clock.monotonicMs();
    // An error without a listener would end the process; whoever has a call on it hears of the loss by that.
    session.on("error", () => undefined);
    session.once("goaway", () => {
      session.close();
    });
    session.once("close", () => {
      this.#endWatch();
    });
    this.opened = new Promise((resolve, reject) => {
      session.once("connect", () => {
        this.heard();
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
    stream.once("response", () => {
      this.heard();
    });
    stream.once("close", () => {
      this.#streams -= 1;
      if (this.#streams === 0) this.#rest();
    });
    return stream;
  }

  heard(): void {
    this.#lastHeardMs = this.#clock.monotonicMs();
  }

  /** Whether the other side is there, as far as is known or can be asked. Where not, the connection is ended. */
  async verified(): Promise<boolean> {
    return this.#silentMs() <= this.#times.pingIntervalMs || (await this.#ask());
  }

  end(error: Error): void {
    if (!this.session.destroyed) this.session.destroy(error, constants.NGHTTP2_CANCEL);
  }

  #silentMs(): number {
    return this.#clock.monotonicMs() - this.#lastHeardMs;
  }

  #begin(): void {
    this.session.ref();
    this.#keepWatch();
  }

  #rest(): void {
    this.#endWatch();
    if (!this.session.destroyed) this.session.unref();
  }

  /** Looks again whenever the connection may have been silent for too long, until it is lost or at rest. */
  #keepWatch(): void {
    let isOver = false;
    const look = async (): Promise<void> => {
      if (this.#silentMs() >= this.#times.pingIntervalMs && !(await this.#ask())) return;
      if (!isOver) wait();
    };
    const wait = (): void => {
      turnOff = setAlarm(this.#clock, this.#times.pingIntervalMs - this.#silentMs(), () => {
        look().catch((thrown: unknown) => {
          this.end(thrown as Error);
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

  async #ask(): Promise<boolean> {
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
    if (isThere) this.heard();
    else this.end(Object.assign(new Error("the connection no longer answers"), { code: "ETIMEDOUT" }));
    return isThere;
  }
}
