import { CreateBucketCommand, ListMultipartUploadsCommand, S3Client } from "@aws-sdk/client-s3";
import { createLog, exponential, randomToken, Secret, systemClock } from "@turnbox/core";
import { providePythonTools, provideVersityGateway, startMoto, startVersityGateway } from "@turnbox/core/testing";
import type { ObjectStore } from "../object-store.ts";
import type { ObjectStoreHarness } from "../object-store.suite.ts";
import { openS3ObjectStore } from "./s3-object-store.ts";
import type { S3Credentials, S3Options } from "./s3-options.ts";

/** A server of S3 by others, with an empty bucket. */
export interface S3Server extends AsyncDisposable {
  readonly url: string;
  readonly bucket: string;
  readonly credentials: S3Credentials;
  /** Where the objects of the bucket are, if they are files. */
  readonly directory?: string;
}

/** Undefined if it cannot be had, which is printed. */
export async function startMotoS3(): Promise<S3Server | undefined> {
  const tools = await providePythonTools();
  if (tools === undefined) return undefined;
  const moto = await startMoto(tools.python);
  const server = {
    url: moto.url,
    bucket: newBucket(),
    credentials: { accessKeyId: "test", secretAccessKey: new Secret("test") },
  };
  using client = clientOf(server);
  await client.send(new CreateBucketCommand({ Bucket: server.bucket }));
  return { ...server, [Symbol.asyncDispose]: () => moto[Symbol.asyncDispose]() };
}

/** Undefined if it cannot be had, which is printed. */
export async function startVersityS3(): Promise<S3Server | undefined> {
  const program = await provideVersityGateway();
  if (program === undefined) return undefined;
  const gateway = await startVersityGateway(program);
  const bucket = newBucket();
  const { url, accessKeyId, secretAccessKey } = gateway;
  return {
    url,
    bucket,
    credentials: { accessKeyId, secretAccessKey },
    directory: await gateway.makeBucket(bucket),
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

/** A store in the bucket of a server, below a prefix, with pauses that are over at once. */
export function openTestStore(
  { url, bucket, credentials }: Pick<S3Server, "url" | "bucket" | "credentials">,
  more: Partial<S3Options> = {},
): ObjectStore {
  const { limits, ...rest } = more;
  return openS3ObjectStore({
    bucket,
    prefix: "turnbox/tests/",
    endpoint: url,
    credentials,
    clock: systemClock,
    random: Math.random,
    logger: createLog({ name: "test", level: "silent", to: { write: () => undefined } }),
    ...rest,
    limits: { pauseMs: exponential({ firstMs: 5, longestMs: 50 }), patienceMs: 5000, ...limits },
  });
}

/** Uploads of the bucket that are neither finished nor removed, by their keys. */
export async function listUploads(server: S3Server): Promise<readonly string[]> {
  using client = clientOf(server);
  const { Uploads: uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: server.bucket }));
  return uploads.map(({ Key: key = "" }) => key);
}

export async function createHarness(server: S3Server): Promise<ObjectStoreHarness> {
  const store = openTestStore(server);
  return {
    store,
    other: async () => openTestStore(server),
    leftovers: () => listUploads(server),
    [Symbol.asyncDispose]: async () => {
      await store[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const newBucket = (): string => `bucket-${randomToken(8)}`;

/** A client of the test itself. */
export function clientOf({ url, credentials }: Pick<S3Server, "url" | "credentials">): S3Client & Disposable {
  const client = new S3Client({
    endpoint: url,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: credentials.accessKeyId, secretAccessKey: credentials.secretAccessKey.reveal() },
  });
  return Object.assign(client, {
    [Symbol.dispose]: () => {
      client.destroy();
    },
  });
}
