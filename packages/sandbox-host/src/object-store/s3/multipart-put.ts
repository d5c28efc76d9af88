import {
  AbortMultipartUploadCommand,
  type CompletedPart,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import {
  type Call,
  createDeadline,
  hasReason,
  invalidArgument,
  type LinkedSignal,
  linkSignals,
  raceTime,
  SandboxError,
} from "@turnbox/core";
import type { PutResult } from "../object-store.ts";
import { findPut, isUnknown, newPutMark, PUT_MARK, type S3Address } from "./conditional-put.ts";
import type { S3Requests } from "./s3-requests.ts";

/** How long the parts are, by which their checksums are compared when the object is read. */
export const PART_BYTES_MARK = "turnbox-part-bytes";

/** S3 takes no more parts. */
const MAX_PARTS = 10_000;
/** How long parts that are under way may take to arrive when the put has failed for another reason. */
const GRACE_MS = 5000;
const ABORT_TIMEOUT_MS = 20_000;
/** When the parts are removed once more, each after the time before. */
const ABORT_AGAIN_MS = [0, 250, 500, 1000];

export interface MultipartPutOptions {
  readonly requests: S3Requests;
  readonly address: S3Address;
  /** The key as callers know it. */
  readonly key: string;
  /** Ends the body. It is aborted if a part fails. */
  readonly ending: LinkedSignal;
  /** Ends the put. */
  readonly signal: AbortSignal;
}

/**
 * An object that is put in parts, some of them at a time. Until `complete` there is none; `abort` waits until nothing of it is
 * under way and gives back what its parts take. (The SDK's own uploader ends no request with a signal, and answers an abort
 * before it has cleaned up.)
 */
export class MultipartPut implements Disposable {
  readonly #options: MultipartPutOptions;
  readonly #uploadId: string;
  readonly #mark: string;
  readonly #parts: CompletedPart[] = [];
  readonly #sending = new Set<Promise<void>>();
  /** Ends the requests. */
  readonly #cutting: LinkedSignal;
  #next = 1;

  private constructor(options: MultipartPutOptions, uploadId: string, mark: string) {
    this.#options = options;
    this.#uploadId = uploadId;
    this.#mark = mark;
    this.#cutting = linkSignals([options.signal]);
  }

  static async begin(options: MultipartPutOptions): Promise<MultipartPut> {
    const { requests, address, key, signal } = options;
    const mark = newPutMark();
    const command = new CreateMultipartUploadCommand({
      ...address,
      ChecksumAlgorithm: "SHA256",
      Metadata: { [PUT_MARK]: mark, [PART_BYTES_MARK]: String(requests.limits.partBytes) },
    });
    const { UploadId: uploadId } = await requests.send((client, more) => client.send(command, more), {
      what: `begin to put ${key}`,
      signal,
    });
    if (uploadId === undefined) throw new SandboxError("OBJECT_STORE_DENIED", "the object store gave an upload no id");
    return new MultipartPut(options, uploadId, mark);
  }

  /** Sends a part when one of those under way has arrived. The failure of a part becomes the reason of `ending`. */
  async add(part: Buffer): Promise<void> {
    if (this.#next > MAX_PARTS) {
      throw invalidArgument("body", `must have at most ${MAX_PARTS * this.#options.requests.limits.partBytes} bytes`);
    }
    while (this.#sending.size >= this.#options.requests.limits.parallelParts) await Promise.race(this.#sending);
    this.#options.ending.signal.throwIfAborted();
    const sending: Promise<void> = this.#send(part, this.#next).then(
      () => void this.#sending.delete(sending),
      (thrown: unknown) => {
        this.#sending.delete(sending);
        this.#options.ending.abort(thrown);
      },
    );
    this.#sending.add(sending);
    this.#next += 1;
  }

  async complete(): Promise<PutResult> {
    await Promise.all(this.#sending);
    const { requests, address, key, ending, signal } = this.#options;
    ending.signal.throwIfAborted();
    const parts = this.#parts.toSorted((one, other) => (one.PartNumber ?? 0) - (other.PartNumber ?? 0));
    const command = new CompleteMultipartUploadCommand({
      ...address,
      UploadId: this.#uploadId,
      MultipartUpload: { Parts: parts },
    });
    const failures: SandboxError[] = [];
    try {
      const { ETag: etag = "" } = await requests.send((client, more) => client.send(command, more), {
        what: `finish the put of ${key}`,
        signal,
        onFailure: (failure) => failures.push(failure),
      });
      return { etag };
    } catch (thrown) {
      // A try whose answer was lost may have finished it, and the next one finds no upload any more.
      const etag = failures.some(isUnknown)
        ? await findPut(requests, { address, key, mark: this.#mark, signal })
        : undefined;
      if (etag !== undefined) return { etag };
      if (!hasReason(thrown, "OBJECT_NOT_FOUND")) throw thrown;
      throw new SandboxError("OBJECT_STORE_UNAVAILABLE", `the object store has lost the parts of ${key}`, {
        cause: thrown,
      });
    }
  }

  /** Gives back its listener, after `complete` or `abort`. */
  [Symbol.dispose](): void {
    this.#cutting[Symbol.dispose]();
  }

  /** Never throws: what it cannot remove now, `check` removes when it is old. */
  async abort(reason: unknown): Promise<void> {
    this.#options.ending.abort(reason);
    const { requests, key } = this.#options;
    const arrived = Promise.allSettled(this.#sending);
    if (!this.#cutting.signal.aborted) await raceTime(arrived, { clock: requests.clock, atMostMs: GRACE_MS });
    const isCut = this.#cutting.signal.aborted || this.#sending.size > 0;
    this.#cutting.abort(reason);
    await arrived;
    using deadline = createDeadline({ clock: requests.clock, ms: ABORT_TIMEOUT_MS });
    try {
      // A server may store a part that was cut off, also after its upload was removed; then that is there again.
      for (const pauseMs of isCut ? ABORT_AGAIN_MS : [0]) {
        await requests.clock.sleep(pauseMs, deadline);
        await this.#remove(deadline);
      }
    } catch (thrown) {
      requests.logger.warn({ key, error: thrown }, "parts of an object are left in the object store");
    }
  }

  async #remove({ signal }: Call): Promise<void> {
    const { requests, address, key } = this.#options;
    const command = new AbortMultipartUploadCommand({ ...address, UploadId: this.#uploadId });
    const request = { what: `remove the parts of ${key}`, signal };
    try {
      await requests.send((client, more) => client.send(command, more), request);
    } catch (thrown) {
      if (!hasReason(thrown, "OBJECT_NOT_FOUND")) throw thrown;
    }
  }

  async #send(part: Buffer, number: number): Promise<void> {
    const { requests, address, key } = this.#options;
    const command = new UploadPartCommand({
      ...address,
      UploadId: this.#uploadId,
      PartNumber: number,
      Body: part,
      ContentLength: part.byteLength,
      ChecksumAlgorithm: "SHA256",
    });
    const { ETag: etag, ChecksumSHA256: checksum } = await requests.send((client, more) => client.send(command, more), {
      what: `put part ${number} of ${key}`,
      bytes: part.byteLength,
      signal: this.#cutting.signal,
    });
    this.#parts.push({
      PartNumber: number,
      ETag: etag,
      ...(checksum === undefined ? {} : { ChecksumSHA256: checksum }),
    });
  }
}
