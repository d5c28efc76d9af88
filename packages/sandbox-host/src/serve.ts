import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  acquireHomeLock,
  createLog,
  createTokenVerifier,
  loadOrCreateHomeToken,
  loadPublicKeys,
  openHome,
  parentDeath,
  SandboxError,
  systemClock,
} from "@turnbox/core";
import { createHealthBoard, createRpcHandler, listen, registerReflection } from "@turnbox/core/server";
import { composeHost } from "./compose.ts";
import { type HostConfig, loadConfig } from "./config.ts";
import { createRoutes, HOST_FILES } from "./rpc/routes.ts";
import { createCrashOnRequest } from "./session/crash-point.ts";

export interface ServeOptions {
  /** The home that the token and the fleet's keys are in. */
  readonly home: string;
  readonly dataDirectory: string;
  readonly port: number;
  readonly path: string;
  /** A file that names a crash point to end this process at; null in service. */
  readonly crashFile: string | null;
  /** Aborts when the process is asked to stop. */
  readonly stop: AbortSignal;
  /** Aborts when the process is asked a second time: whatever is not done is left. */
  readonly stopNow: AbortSignal;
}

const PARENT_POLL_MS = 500;

/**
 * Runs a sandbox-host until it is asked to stop or its parent, at the other end of stdin, is gone. Tells its parent on
 * stdout, in one line of JSON, when it is ready.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const { home, dataDirectory } = options;
  const config = loadConfig(home);
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  await using _lock = await acquireHomeLock(join(dataDirectory, "host.lock"));
  const log = createLog({
    name: "sandbox-host",
    level: config.logLevel,
    to: { path: join(dataDirectory, "host.log") },
  });
  const { id: issuer } = openHome(home);
  const verifier = createTokenVerifier({
    publicKeys: loadPublicKeys(join(home, "keys", "signing-key.pub.pem")),
    homeToken: loadOrCreateHomeToken(join(home, "token")),
    issuer,
    clock: systemClock,
  });

  const shutdown = new AbortController();
  await using composed = await composeHost(
    {
      config,
      dataDirectory,
      log,
      path: options.path,
      ...(options.crashFile === null ? {} : { reach: createCrashOnRequest(options.crashFile) }),
    },
    { signal: options.stop },
  );
  const board = createHealthBoard();
  const routes = createRoutes(composed.host);
  const handler = createRpcHandler({
    verifier,
    log,
    clock: systemClock,
    shutdownSignal: shutdown.signal,
    routes: (router) => {
      routes(router);
      board.register(router);
      registerReflection(router, HOST_FILES);
    },
  });
  await using server = await listen({
    host: config.bindAddress,
    port: options.port,
    handler,
    keys: "present",
    drainMs: config.shutdownTimeout,
    ...(await tlsOf(config)),
  });
  board.set("", "serving");
  const scheme = config.tlsCertificatePath === null ? "http" : "https";
  const url = `${scheme}://${config.advertiseAddr}:${server.port}`;
  log.info({ url }, "serving");
  process.stdout.write(`${JSON.stringify({ event: "ready", url, pid: process.pid })}\n`);

  await untilStopped(options.stop);
  board.set("", "not_serving");
  log.info("stopping");
  const finished = new AbortController();
  const endCalls = (): void => {
    shutdown.abort(new SandboxError("SHUTTING_DOWN", "the host is stopping"));
  };
  options.stopNow.addEventListener("abort", endCalls, { once: true });
  systemClock.sleep(config.shutdownTimeout, { signal: finished.signal }).then(endCalls, () => undefined);
  await server[Symbol.asyncDispose]();
  finished.abort();
}

async function untilStopped(stop: AbortSignal): Promise<void> {
  const ended = new AbortController();
  const stopped = new Promise<void>((resolve) => {
    if (stop.aborted) resolve();
    stop.addEventListener("abort", () => {
      resolve();
    });
  });
  const parent = parentDeath({
    clock: systemClock,
    intervalMs: PARENT_POLL_MS,
    signal: ended.signal,
    stdin: process.stdin,
  });
  await Promise.race([stopped, parent.catch(() => stopped)]);
  ended.abort();
}

async function tlsOf(
  config: HostConfig,
): Promise<{ readonly tls?: { readonly certificate: Buffer; readonly privateKey: Buffer } }> {
  if (config.tlsCertificatePath === null || config.tlsKeyPath === null) return {};
  return {
    tls: { certificate: await readFile(config.tlsCertificatePath), privateKey: await readFile(config.tlsKeyPath) },
  };
}
