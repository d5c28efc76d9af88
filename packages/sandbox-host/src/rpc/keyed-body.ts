import { createHash, type Hash } from "node:crypto";
import { invalidArgument, SandboxError } from "@turnbox/core";
import type { KeyedRequest } from "../session/receipts.ts";
import type { Host } from "./host.ts";

/** A message of a client stream: the header first, then data. */
interface Part<Header> {
  readonly part:
    | { readonly case: "header"; readonly value: Header }
    | { readonly case: "data"; readonly value: Uint8Array }
    | { readonly case: undefined; readonly value?: undefined };
}

const MAX_DATA_BYTES = 1024 * 1024;

/** Takes a client stream apart. */
export async function openUpload<Header>(
  requests: AsyncIterable<Part<Header>>,
): Promise<{ readonly header: Header; readonly body: AsyncIterable<Uint8Array> }> {
  const parts = requests[Symbol.asyncIterator]();
  const first = await parts.next();
  if (first.done === true || first.value.part.case !== "header")
    throw invalidArgument("header", "must be the first message");
  return { header: first.value.part.value, body: readData(parts) };
}

async function* readData(parts: AsyncIterator<Part<unknown>>): AsyncIterable<Uint8Array> {
  for (let next = await parts.next(); next.done !== true; next = await parts.next()) {
    const { part } = next.value;
    if (part.case !== "data") throw invalidArgument("data", "only data follows the header");
    if (part.value.length > MAX_DATA_BYTES) throw invalidArgument("data", `must have at most ${MAX_DATA_BYTES} bytes`);
    yield part.value;
  }
}

/** What the receipt of an upload remembers. */
interface Uploaded<Result> {
  readonly result: Result;
  readonly bodyHash: string;
}

/**
 * Does an upload once for its key. A replay is read to its end, and has to have the same body. Effect and receipt are not
 * one commit: a crash between them makes a repeated upload write the same bytes again.
 */
export async function uploadOnce<Result>(
  host: Host,
  request: KeyedRequest & { readonly body: AsyncIterable<Uint8Array> },
  work: (body: AsyncIterable<Uint8Array>) => Promise<Result>,
): Promise<Result> {
  const hash = createHash("sha256");
  const body = hashed(request.body, hash);
  let mine: Uploaded<Result> | undefined;
  const uploaded = await host.receipts.once<Uploaded<Result>>(request, async (receiptOf) => {
    const result = await work(body);
    mine = { result, bodyHash: hash.digest("hex") };
    const receipt = receiptOf(mine);
    if (receipt !== undefined) await host.records.call("keepReceipt", receipt);
    return mine;
  });
  if (mine === undefined) await assertSameBody(body, { hash, expected: uploaded.bodyHash, key: request.key });
  return uploaded.result;
}

async function assertSameBody(
  body: AsyncIterable<Uint8Array>,
  { hash, expected, key }: { readonly hash: Hash; readonly expected: string; readonly key: string },
): Promise<void> {
  for await (const _ of body);
  if (hash.digest("hex") === expected) return;
  throw new SandboxError("IDEMPOTENCY_CONFLICT", `idempotency key ${JSON.stringify(key)} had another body`, {
    metadata: { key },
  });
}

async function* hashed(data: AsyncIterable<Uint8Array>, hash: Hash): AsyncIterable<Uint8Array> {
  for await (const chunk of data) {
    hash.update(chunk);
    yield chunk;
  }
}
