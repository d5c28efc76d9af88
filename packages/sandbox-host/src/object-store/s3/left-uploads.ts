import { AbortMultipartUploadCommand, ListMultipartUploadsCommand } from "@aws-sdk/client-s3";
import { type Call, hasReason } from "@turnbox/core";
import type { S3Requests } from "./s3-requests.ts";

/** A put that takes longer has ended without a word. */
const LEFT_AFTER_MS = 24 * 60 * 60 * 1000;

/**
 * Removes the parts of puts whose process has ended in the middle: they take space, and are in no list of objects. It looks at
 * the first 1000 uploads; the next check finds the others.
 */
export async function removeLeftUploads(
  requests: S3Requests,
  where: { readonly Bucket: string; readonly Prefix: string },
  { signal }: Call,
): Promise<void> {
  const list = new ListMultipartUploadsCommand(where);
  try {
    const { Uploads: uploads = [] } = await requests.send((client, options) => client.send(list, options), {
      what: "list uploads",
      signal,
    });
    for (const { Key: key = "", UploadId: uploadId, Initiated: begun } of uploads) {
      const isOld = begun !== undefined && requests.clock.nowMs() - begun.getTime() > LEFT_AFTER_MS;
      if (!isOld || !key.startsWith(where.Prefix)) continue;
      const abort = new AbortMultipartUploadCommand({ Bucket: where.Bucket, Key: key, UploadId: uploadId });
      await requests.send((client, options) => client.send(abort, options), { what: "remove an upload", signal });
    }
  } catch (thrown) {
    // Rights to objects are enough to serve; an upload that has ended since is what was wanted.
    if (!hasReason(thrown, "OBJECT_STORE_DENIED", "OBJECT_NOT_FOUND")) throw thrown;
    requests.logger.debug({ error: thrown }, "parts of former puts cannot be removed");
  }
}
