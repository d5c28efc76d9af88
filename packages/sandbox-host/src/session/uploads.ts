import { createHash, type Hash } from "node:crypto";
import { SandboxError } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { KeyedRequest, Receipts } from "./receipts.ts";

/** A keyed request whose body is not part of its payload. */
export interface KeyedUpload extends KeyedRequest {
  readonly body: AsyncIterable<Uint8Array>;
  /** What a refusal calls the body. */
  readonly bodyName: "archive" | "body";
}

/** What the receipt of an upload remembers. */
type Uploaded<Result> = Result & { readonly bodyHash: string };

/**
 * Does uploads once for their keys. A replay is read to its end, and has to have the same body. Effect and receipt are not
 * one commit: a crash between them makes a repeated upload write the same bytes again.
 */
export class Uploads {
  readonly #receipts: Pick<Receipts, "once">;
  readonly #records: Pick<Records, "call">;

  constructor(deps: { readonly receipts: Pick<Receipts, "once">; readonly records: Pick<Records, "call"> }) {
    this.#receipts = deps.receipts;
    this.#records = deps.records;
  }

  /** Runs `work` on the body unless its result is known; the receipt is the result with the hash of the body. */
  async once<Result extends object>(
    request: KeyedUpload,
    work: (body: AsyncIterable<Uint8Array>) => Promise<Result>,
  ): Promise<Result> {
    const hash = createHash("sha256");
    const body = hashed(request.body, hash);
    let mine: Uploaded<Result> | undefined;
    const uploaded = await this.#receipts.once<Uploaded<Result>>(request, async (receiptOf) => {
      const result = await work(body);
      mine = { ...result, bodyHash: hash.digest("hex") };
      const receipt = receiptOf(mine);
      if (receipt !== undefined) await this.#records.call("keepReceipt", receipt);
      return mine;
    });
    if (mine === undefined) await assertSameBody(request, { body, hash, expected: uploaded.bodyHash });
    return uploaded;
  }
}

async function assertSameBody(
  { key, bodyName }: KeyedUpload,
  replay: { readonly body: AsyncIterable<Uint8Array>; readonly hash: Hash; readonly expected: string },
): Promise<void> {
  for await (const _ of replay.body);
  if (replay.hash.digest("hex") === replay.expected) return;
  throw new SandboxError("IDEMPOTENCY_CONFLICT", `idempotency key ${JSON.stringify(key)} had another ${bodyName}`, {
    metadata: { key },
  });
}

async function* hashed(data: AsyncIterable<Uint8Array>, hash: Hash): AsyncIterable<Uint8Array> {
  for await (const chunk of data) {
    hash.update(chunk);
    yield chunk;
  }
}
