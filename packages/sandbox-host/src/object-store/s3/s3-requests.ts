import { S3Client } from "@aws-sdk/client-s3";
import {
  type Clock,
  createDeadline,
  exponential,
  hasReason,
  type Log,
  raceSignal,
  retry,
  SandboxError,
} from "@turnbox/core";
import { s3Failure } from "./s3-failure.ts";
import type { S3Limits, S3Options } from "./s3-options.ts";

const MIB = 1024 * 1024;
const CONNECTION_TIMEOUT_MS = 5000;
/** What a second is for, at the least, of what is sent. */
const MIB_MS = 1000;

export interface S3Request {
  /** In a few words, for messages: "put v1/pointer". */
  readonly what: string;
  /** How much it sends. */
  readonly bytes?: number;
  readonly signal: AbortSignal;
  /** Called with each failure of a try. */
  readonly onFailure?: (failure: SandboxError) => unknown;
}

type Send<Output> = (client: S3Client, options: { readonly abortSignal: AbortSignal }) => Promise<Output>;

/** Sends requests, again while they fail with what may pass. Each try has a deadline, and there are no other retries. */
export class S3Requests implements Disposable {
  readonly limits: S3Limits;
  readonly clock: Clock;
  readonly logger: Log;
  readonly #client: S3Client;

  constructor(options: S3Options) {
    const { random, limits = {} } = options;
    this.clock = options.clock;
    this.logger = options.logger;
    this.limits = {
      partBytes: 16 * MIB,
      parallelParts: 3,
      requestTimeoutMs: 20_000,
      stallMs: 60_000,
      patienceMs: 60_000,
      pauseMs: exponential({ firstMs: 200, longestMs: 10_000, jitter: 0.5, random }),
      ...limits,
    };
    this.#client = createClient(options);
  }

  async send<Output>(send: Send<Output>, request: S3Request): Promise<Output> {
    const { patienceMs, pauseMs } = this.limits;
    const { signal, what } = request;
    signal.throwIfAborted();
    return await retry(() => this.#try(send, request), {
      clock: this.clock,
      patienceMs,
      pauseMs,
      signal,
      passes: (failure) => hasReason(failure, "OBJECT_STORE_UNAVAILABLE"),
      onRetry: (failure, failures) => {
        const { metadata } = failure as SandboxError;
        this.logger.debug({ what, failures, code: metadata["code"] }, "the object store failed; another try follows");
      },
    });
  }

  [Symbol.dispose](): void {
    this.#client.destroy();
  }

  async #try<Output>(send: Send<Output>, { what, bytes = 0, signal, onFailure }: S3Request): Promise<Output> {
    const ms = this.limits.requestTimeoutMs + Math.ceil(bytes / MIB) * MIB_MS;
    using deadline = createDeadline({ clock: this.clock, ms, signal });
    try {
      // The SDK waits for credentials without the signal.
      return await raceSignal(send(this.#client, { abortSignal: deadline.signal }), deadline.signal);
    } catch (thrown) {
      signal.throwIfAborted();
      const failure = deadline.signal.aborted ? late(what, ms, thrown) : s3Failure(thrown, what);
      onFailure?.(failure);
      throw failure;
    }
  }
}

const late = (what: string, ms: number, cause: unknown): SandboxError =>
  new SandboxError("OBJECT_STORE_UNAVAILABLE", `the object store did not ${what} within ${ms} ms`, {
    cause,
    metadata: { code: "Timeout" },
  });

function createClient({ endpoint, region, pathStyle, credentials }: S3Options): S3Client {
  const where = region ?? (endpoint === undefined ? undefined : "us-east-1");
  const client = new S3Client({
    ...(where === undefined ? {} : { region: where }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(credentials === undefined
      ? {}
      : {
          credentials: {
            accessKeyId: credentials.accessKeyId,
            secretAccessKey: credentials.secretAccessKey.reveal(),
            ...(credentials.sessionToken === undefined ? {} : { sessionToken: credentials.sessionToken.reveal() }),
          },
        }),
    forcePathStyle: pathStyle ?? endpoint !== undefined,
    maxAttempts: 1,
    // What is sent carries a checksum that the server compares. What comes back is compared by `CheckedBody`.
    requestChecksumCalculation: "WHEN_SUPPORTED",
    responseChecksumValidation: "WHEN_REQUIRED",
    // Not every server answers an `Expect: 100-continue`, and the SDK waits for seconds then.
    expectContinueHeader: false,
    requestHandler: { connectionTimeout: CONNECTION_TIMEOUT_MS },
  });
  askForChecksums(client);
  return client;
}

/** Has the server say the checksum of what it sends, while the SDK leaves the body as it is. */
function askForChecksums(client: S3Client): void {
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (step) => {
        const { headers } = step.request as { readonly headers: Record<string, string> };
        if (commandName === "GetObjectCommand") headers["x-amz-checksum-mode"] = "ENABLED";
        return await next(step);
      },
    { step: "build", name: "askForChecksums" },
  );
}
