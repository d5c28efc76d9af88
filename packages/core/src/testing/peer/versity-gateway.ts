import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Secret } from "../../secret/secret.ts";
import { startServerProcess, type ServerProcess } from "./server-process.ts";
import { provideToolFolder } from "./tool-folder.ts";

const exec = promisify(execFile);

const MODULE = "github.com/versity/versitygw/cmd/versitygw";
const VERSION = "v1.8.0";
const BUILD_TIMEOUT_MS = 600_000;

/** A server of S3 by others that stores: each bucket is a directory. */
export interface VersityGateway extends ServerProcess {
  readonly accessKeyId: string;
  readonly secretAccessKey: Secret;
  /** Makes an empty bucket. Returns the directory that its objects are in. */
  makeBucket(bucket: string): Promise<string>;
}

/** The program, built once, or undefined if Go cannot build it, which is said aloud. */
export async function provideVersityGateway(): Promise<string | undefined> {
  const folder = await provideToolFolder({ name: "versitygw", version: VERSION, install });
  return folder && join(folder, "versitygw");
}

async function install(folder: string): Promise<void> {
  const env = { ...process.env, GOBIN: folder, CGO_ENABLED: "0" };
  await exec("go", ["install", `${MODULE}@${VERSION}`], { env, timeout: BUILD_TIMEOUT_MS });
}

export async function startVersityGateway(program: string): Promise<VersityGateway> {
  const root = await mkdtemp(join(tmpdir(), "turnbox-versitygw-"));
  const buckets = join(root, "buckets");
  const marks = join(root, "marks");
  for (const folder of [buckets, marks]) await mkdir(folder);
  const [accessKeyId, secret] = ["turnbox-test", "turnbox-test-secret"];
  const server = await startServerProcess({
    name: "versitygw",
    program,
    // Its marks of objects in a directory of their own: not each file system keeps extended attributes.
    argv: (port) => [
      ...["--port", `127.0.0.1:${port}`, "--region", "us-east-1", "--health", "/health", "--quiet"],
      ...["posix", "--sidecar", marks, buckets],
    ],
    env: { ROOT_ACCESS_KEY: accessKeyId, ROOT_SECRET_KEY: secret },
    readyPath: "/health",
  });
  return {
    url: server.url,
    accessKeyId,
    secretAccessKey: new Secret(secret),
    makeBucket: async (bucket) => {
      const folder = join(buckets, bucket);
      await mkdir(folder);
      return folder;
    },
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await rm(root, { recursive: true, force: true });
    },
  };
}
