import type { Clock } from "@turnbox/core";
import type { Logger } from "pino";
import type { ReceiptBounds as Bounds } from "../record/receipt-records.ts";
import type { Records } from "../record/records.ts";

/** How long the results of idempotent requests are kept, within their bounds. */
const RETENTION_MS = 24 * 3_600_000;
/** The part of a session's bounds that may be written between two looks. */
const LOOK_AFTER = 1 / 2;

/** Keeps the receipts of requests within bounds of count and bytes, for each session and for the host. */
export class ReceiptBounds {
  readonly #records: Records;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #session: Bounds;
  readonly #host: Bounds;
  #count = 0;
  #bytes = 0;

  constructor(deps: {
    readonly records: Records;
    readonly clock: Clock;
    readonly log: Logger;
    readonly session: Bounds;
    readonly host: Bounds;
  }) {
    this.#records = deps.records;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#session = deps.session;
    this.#host = deps.host;
  }

  /** A receipt of this size is being written. Never waits. */
  note(bytes: number): void {
    this.#count += 1;
    this.#bytes += bytes;
    const most = { count: this.#session.count * LOOK_AFTER, bytes: this.#session.bytes * LOOK_AFTER };
    if (this.#count <= most.count && this.#bytes <= most.bytes) return;
    this.tend().catch((err: unknown) => {
      this.#log.error({ err }, "old receipts not dropped");
    });
  }

  /** Drops what is too old, and what is beyond the bounds. */
  async tend(): Promise<void> {
    this.#count = 0;
    this.#bytes = 0;
    const beforeMs = this.#clock.nowMs() - RETENTION_MS;
    await this.#records.call("keepReceipts", { beforeMs, session: this.#session, host: this.#host });
  }
}
