import { AbortMultipartUploadCommand, ListMultipartUploadsCommand, type MultipartUpload } from "@aws-sdk/client-s3";
import { type Call, hasReason } from "@turnbox/core";
import type { S3Requests } from "./s3-requests.ts";

/** A put that takes longer has ended without a word. */
const LEFT_AFTER_MS = 24 * 60 * 60 * 1000;
/** Each of a thousand uploads; the next check finds what is behind them. */
const MAX_PAGES = 10;

/** The keys of a bucket that a store has. */
export interface S3Area {
  readonly Bucket: string;
  readonly Prefix: string;
}

/** Removes the parts of puts whose process has ended in the middle: they take space, and are in no list of objects. */
export async function removeLeftUploads(requests: S3Requests, area: S3Area, { signal }: Call): Promise<void> {
  try {
    for await (const { Key: key, UploadId: uploadId, Initiated: begun } of uploadsOf(requests, area, signal)) {
      const isOld = begun !== undefined && requests.clock.nowMs() - begun.getTime() > LEFT_AFTER_MS;
      if (!isOld || key?.startsWith(area.Prefix) !== true) continue;
      const command = new AbortMultipartUploadCommand({ Bucket: area.Bucket, Key: key, UploadId: uploadId });
      await requests.send((client, options) => client.send(command, options), { what: "remove an upload", signal });
    }
  } catch (thrown) {
    // Rights to objects are enough to serve; an upload that has ended since is what was wanted.
    if (!hasReason(thrown, "OBJECT_STORE_DENIED", "OBJECT_NOT_FOUND")) throw thrown;
    requests.logger.debug({ error: thrown }, "parts of former puts cannot be removed");
  }
}

async function* uploadsOf(
  requests: S3Requests,
  area: S3Area,
  signal: AbortSignal,
): AsyncGenerator<MultipartUpload, void, undefined> {
  let from: { readonly KeyMarker?: string; readonly UploadIdMarker?: string } | undefined = {};
  for (let page = 0; page < MAX_PAGES && from !== undefined; page += 1) {
    const command: ListMultipartUploadsCommand = new ListMultipartUploadsCommand({ ...area, ...from });
    const answer = await requests.send((client, options) => client.send(command, options), {
      what: "list uploads",
      signal,
    });
    yield* answer.Uploads ?? [];
    const { IsTruncated: more, NextKeyMarker: key, NextUploadIdMarker: upload } = answer;
    from =
      more === true && key !== undefined ? { KeyMarker: key, ...(upload && { UploadIdMarker: upload }) } : undefined;
  }
}
