import {
  DeleteObjectsCommand,
  GetObjectCommand,
  type GetObjectCommandOutput,
  HeadObjectCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandOutput,
} from "@aws-sdk/client-s3";
import { Readable } from "node:stream";
import { type Call, hasReason, linkSignals, SandboxError } from "@turnbox/core";
import { bodyChunks, bodyParts, unwrapBodyFailure } from "../body-chunks.ts";
import { CheckedBody } from "../checked-body.ts";
import {
  type GetOptions,
  type ListOptions,
  MAX_PAGE,
  type ObjectInfo,
  type ObjectPage,
  type ObjectStore,
  type PutOptions,
  type PutResult,
} from "../object-store.ts";
import { probe } from "../probe.ts";
import { parseBody, parseCondition, parseKey, parseKeys, parseListOptions, parsePrefix, parseRange } from "../rules.ts";
import { putObject, type S3Address } from "./conditional-put.ts";
import { removeLeftUploads } from "./left-uploads.ts";
import { MultipartPut } from "./multipart-put.ts";
import { checkOf, infoOf, isOwnKey, totalOf } from "./s3-answer.ts";
import { codeOf, s3Failure } from "./s3-failure.ts";
import { checkS3Options, type S3Options } from "./s3-options.ts";
import { S3Requests } from "./s3-requests.ts";

/** Opens the store in a bucket that is there. Nothing is sent yet: `check` says whether the bucket can be used. */
export function openS3ObjectStore(options: S3Options): ObjectStore {
  checkS3Options(options);
  return new S3ObjectStore(options);
}

class S3ObjectStore implements ObjectStore {
  readonly kind = "s3";
  readonly #bucket: string;
  readonly #prefix: string;
  readonly #requests: S3Requests;

  constructor(options: S3Options) {
    this.#bucket = options.bucket;
    this.#prefix = options.prefix ?? "";
    this.#requests = new S3Requests(options);
  }

  async put(key: string, body: Uint8Array, options: PutOptions, { signal }: Call): Promise<PutResult> {
    const address = this.#address(key);
    parseBody(body);
    const condition = parseCondition(options.condition);
    return await putObject(this.#requests, { address, key, body, condition, signal });
  }

  async putStream(
    key: string,
    body: AsyncIterable<Uint8Array>,
    { signal }: Call,
  ): Promise<PutResult & { readonly bytes: number }> {
    const address = this.#address(key);
    signal.throwIfAborted();
    using ending = linkSignals([signal]);
    let upload: MultipartPut | undefined;
    let bytes = 0;
    try {
      for await (const { content, isLast } of bodyParts(
        bodyChunks(body, ending.signal),
        this.#requests.limits.partBytes,
      )) {
        bytes += content.byteLength;
        if (isLast && upload === undefined) {
          const put = { address, key, body: content, condition: { kind: "any" }, signal } as const;
          return { ...(await putObject(this.#requests, put)), bytes };
        }
        upload ??= await MultipartPut.begin({ requests: this.#requests, address, key, ending, signal });
        await upload.add(content);
      }
      if (upload === undefined) throw new Error("a body has one part at least");
      return { ...(await upload.complete()), bytes };
    } catch (thrown) {
      await upload?.abort(thrown);
      signal.throwIfAborted();
      throw unwrapBodyFailure(thrown);
    } finally {
      upload?.[Symbol.dispose]();
    }
  }

  async get(key: string, { range }: GetOptions, { signal }: Call): Promise<ObjectInfo & { readonly body: Readable }> {
    const address = this.#address(key);
    parseRange(range);
    const command = new GetObjectCommand({
      ...address,
      ...(range === undefined ? {} : { Range: `bytes=${range.offset}-${range.offset + range.bytes - 1}` }),
    });
    try {
      const answer = await this.#requests.send((client, options) => client.send(command, options), {
        what: `get ${key}`,
        signal,
      });
      return this.#bodyOf(key, answer, range, signal);
    } catch (thrown) {
      if (!(thrown instanceof SandboxError) || codeOf(thrown.cause) !== "InvalidRange") throw thrown;
      const info = await this.stat(key, { signal });
      if (info === undefined) throw new SandboxError("OBJECT_NOT_FOUND", `there is no object ${key}`);
      return { ...info, body: Readable.from([]) };
    }
  }

  async stat(key: string, { signal }: Call): Promise<ObjectInfo | undefined> {
    const address = this.#address(key);
    try {
      const command = new HeadObjectCommand(address);
      const answer = await this.#requests.send((client, options) => client.send(command, options), {
        what: `look at ${key}`,
        signal,
      });
      return infoOf(key, answer, answer.ContentLength ?? 0);
    } catch (thrown) {
      if (hasReason(thrown, "OBJECT_NOT_FOUND")) return undefined;
      throw thrown;
    }
  }

  async list(prefix: string, options: ListOptions, { signal }: Call): Promise<ObjectPage> {
    parsePrefix(prefix);
    const { after, limit } = parseListOptions(options);
    let from = after === "" ? undefined : `${this.#prefix}${after}`;
    // Objects of others with keys that are none of ours may fill a page, and what is to come is known by its last one.
    for (;;) {
      const answer = await this.#listFrom({ prefix, from, limit, signal });
      const all = answer.Contents ?? [];
      const more = answer.IsTruncated === true;
      const objects = all
        .map((item) => ({ item, key: (item.Key ?? "").slice(this.#prefix.length) }))
        .filter(({ key }) => isOwnKey(key))
        .map(({ item, key }) => infoOf(key, item, item.Size ?? 0));
      from = all.at(-1)?.Key;
      if (objects.length > 0 || !more || from === undefined) return { objects, more };
    }
  }

  async delete(keys: readonly string[], { signal }: Call): Promise<void> {
    const all = parseKeys(keys).map((key) => ({ Key: `${this.#prefix}${key}` }));
    for (let at = 0; at < all.length; at += MAX_PAGE) {
      const command = new DeleteObjectsCommand({
        Bucket: this.#bucket,
        Delete: { Objects: all.slice(at, at + MAX_PAGE), Quiet: true },
      });
      await this.#requests.send(
        async (client, options) => {
          const { Errors: errors = [] } = await client.send(command, options);
          const failed = errors.find(({ Code: code }) => code !== "NoSuchKey");
          if (failed !== undefined) throw Object.assign(new Error(failed.Message ?? ""), { name: failed.Code ?? "" });
        },
        { what: "delete objects", signal },
      );
    }
  }

  async check(call: Call): Promise<void> {
    await probe(this, this.#requests.clock, call);
    await removeLeftUploads(this.#requests, { Bucket: this.#bucket, Prefix: this.#prefix }, call);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#requests[Symbol.dispose]();
  }

  #address(key: string): S3Address {
    return { Bucket: this.#bucket, Key: `${this.#prefix}${parseKey("key", key)}` };
  }

  #bodyOf(
    key: string,
    answer: GetObjectCommandOutput,
    range: GetOptions["range"],
    signal: AbortSignal,
  ): ObjectInfo & { readonly body: Readable } {
    const { Body: source, ContentLength: bytes } = answer;
    const total = range === undefined ? bytes : totalOf(answer.ContentRange);
    if (!(source instanceof Readable) || bytes === undefined || total === undefined) {
      if (source instanceof Readable) source.destroy();
      throw new SandboxError("OBJECT_STORE_DENIED", "the object store does not say how long its answer is");
    }
    const { clock, limits } = this.#requests;
    const body = new CheckedBody({
      key,
      source,
      bytes,
      check: range === undefined ? checkOf(answer) : undefined,
      failureOf: (thrown) => s3Failure(thrown, `send the whole body of ${key}`),
      stall: { clock, ms: limits.stallMs },
      signal,
    });
    return { ...infoOf(key, answer, total), body };
  }

  async #listFrom(page: {
    readonly prefix: string;
    readonly from: string | undefined;
    readonly limit: number;
    readonly signal: AbortSignal;
  }): Promise<ListObjectsV2CommandOutput> {
    const command = new ListObjectsV2Command({
      Bucket: this.#bucket,
      Prefix: `${this.#prefix}${page.prefix}`,
      MaxKeys: page.limit,
      ...(page.from === undefined ? {} : { StartAfter: page.from }),
    });
    return await this.#requests.send((client, options) => client.send(command, options), {
      what: `list ${page.prefix}`,
      signal: page.signal,
    });
  }
}
