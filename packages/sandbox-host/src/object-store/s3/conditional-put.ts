import { HeadObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { hasReason, randomToken, SandboxError } from "@turnbox/core";
import { sha256Of } from "../content-check.ts";
import type { PutCondition, PutResult } from "../object-store.ts";
import type { S3Requests } from "./s3-requests.ts";

/** What is stored beside an object. */
export const SHA256_MARK = "turnbox-sha256";
/** Names the call that put the object, so that it can find out later whether it did. */
export const PUT_MARK = "turnbox-put";

/** An object by its bucket and its key there. */
export interface S3Address {
  readonly Bucket: string;
  readonly Key: string;
}

export interface ConditionalPut {
  readonly address: S3Address;
  /** The key as callers know it. */
  readonly key: string;
  readonly body: Uint8Array;
  readonly condition: PutCondition;
  readonly signal: AbortSignal;
}

/** Whether a try that failed so may have had its effect. */
export const isUnknown = ({ admitted }: SandboxError): boolean => admitted === "unknown";

export const newPutMark = (): string => randomToken(24);

/** Puts an object in one request. Where a try may have had its effect unseen, it looks whether the object is its own. */
export async function putObject(requests: S3Requests, put: ConditionalPut): Promise<PutResult> {
  const { address, key, body, condition, signal } = put;
  const mark = newPutMark();
  const failures: SandboxError[] = [];
  const command = new PutObjectCommand({
    ...address,
    ...headersOf(condition),
    Body: body,
    ContentLength: body.byteLength,
    Metadata: { [SHA256_MARK]: sha256Of(body), [PUT_MARK]: mark },
  });
  try {
    const { ETag: etag = "" } = await requests.send((client, options) => client.send(command, options), {
      what: `put ${key}`,
      bytes: body.byteLength,
      signal,
      onFailure: (failure) => failures.push(failure),
    });
    return { etag };
  } catch (thrown) {
    const failure = asChanged(key, condition, thrown);
    if (!failures.some(isUnknown) || !hasReason(failure, "OBJECT_CHANGED", "OBJECT_STORE_UNAVAILABLE")) throw failure;
    const etag = await findPut(requests, { address, key, mark, signal });
    if (etag !== undefined) return { etag };
    // It may have been there, and been replaced since.
    const { reason, message, metadata } = failure;
    throw new SandboxError(reason, message, { cause: failure, metadata, admitted: "unknown" });
  }
}

/** The etag of an object if it was put by the call with the mark; undefined if it was not, or it cannot be found out. */
export async function findPut(
  requests: S3Requests,
  { address, key, mark, signal }: Pick<ConditionalPut, "address" | "key" | "signal"> & { readonly mark: string },
): Promise<string | undefined> {
  try {
    const head = await requests.send((client, options) => client.send(new HeadObjectCommand(address), options), {
      what: `look at ${key}`,
      signal,
    });
    return head.Metadata?.[PUT_MARK] === mark ? head.ETag : undefined;
  } catch (thrown) {
    signal.throwIfAborted();
    if (thrown instanceof SandboxError) return undefined;
    throw thrown;
  }
}

function headersOf(condition: PutCondition): { readonly IfNoneMatch?: string; readonly IfMatch?: string } {
  if (condition.kind === "absent") return { IfNoneMatch: "*" };
  return condition.kind === "matches" ? { IfMatch: condition.etag } : {};
}

/** An object that is to match and is not there has changed. */
function asChanged(key: string, condition: PutCondition, thrown: unknown): unknown {
  if (!hasReason(thrown, "OBJECT_CHANGED", "OBJECT_NOT_FOUND") || condition.kind === "any") return thrown;
  return new SandboxError("OBJECT_CHANGED", `the object ${key} is not what the write expects`, {
    cause: thrown,
    metadata: { key },
  });
}
