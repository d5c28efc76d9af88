import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  acquireHomeLock,
  createAide,
  createLog,
  createTokenVerifier,
  loadOrCreateHomeToken,
  loadPublicKeys,
  openHome,
  parentDeath,
  SandboxError,
  systemClock,
} from "@turnbox/core";
import { createMetrics, createRpcMeter } from "@turnbox/rpc/metrics";
import { createHealthBoard, createRpcHandler, listen, registerReflection, serveMetrics } from "@turnbox/rpc/server";
import { openTracing } from "@turnbox/rpc/trace";
import { composeBackends } from "./compose-backends.ts";
import { composeHost, type HostOptions } from "./compose.ts";
import { type HostConfig, loadConfig, tracingEnvironment } from "./config.ts";
import { createFenceInterceptor } from "./rpc/fence-interceptor.ts";
import { registerHostGauges } from "./rpc/metrics/host-gauges.ts";
import { HOST_METRICS } from "./rpc/metrics/host-metrics.ts";
import { meterHost } from "./rpc/metrics/meter-host.ts";
import { createRoutes, HOST_FILES } from "./rpc/routes.ts";
import { traceBackends, traceTools } from "./rpc/trace/trace-host.ts";
import { createCrashOnRequest } from "./session/crash-point.ts";
import { HOST_VERSION } from "./version.ts";

export interface ServeOptions {
  /** The home that the token and the fleet's keys are in. */
  readonly home: string;
  readonly dataDirectory: string;
  readonly port: number;
  /** `given`: its parent ends it when it stops to say that its event loop turns. */
  readonly heartbeat: "given" | "none";
  readonly path: string;
  /** A file that names a crash point to end this process at; null in service. */
  readonly crashFile: string | null;
  /** Aborts when the process is asked to stop. */
  readonly stop: AbortSignal;
  /** Aborts when the process is asked a second time: whatever is not done is left. */
  readonly stopNow: AbortSignal;
}

const PARENT_POLL_MS = 500;
const HEARTBEAT_MS = 1000;

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

  await using tracing = await openTracing({
    serviceName: "turnbox-sandbox-host",
    version: HOST_VERSION,
    env: tracingEnvironment(),
    clock: systemClock,
    onProblem: (message) => {
      log.warn({ message }, "traces");
    },
  });
  using aide = createAide();
  const parts: HostOptions = {
    config,
    dataDirectory,
    log,
    aide,
    path: options.path,
    ...(options.crashFile === null ? {} : { crashPoint: createCrashOnRequest(options.crashFile) }),
  };
  const shutdown = new AbortController();
  await using composed = await composeHost(
    tracing.state === "off" ? parts : { ...parts, backends: traceBackends(await composeBackends(parts), tracing) },
    { signal: options.stop },
  );
  const board = createHealthBoard();
  const metrics = createMetrics(HOST_METRICS, { process: "shown" });
  registerHostGauges(metrics, composed.host);
  const routes = createRoutes(meterHost(traceTools(composed.host, tracing), metrics));
  const calls = createRpcHandler({
    verifier,
    log,
    clock: systemClock,
    meter: createRpcMeter(metrics, systemClock),
    outerInterceptors: [tracing.server],
    shutdownSignal: shutdown.signal,
    innerInterceptors: [createFenceInterceptor(composed.host.fence)],
    routes: (router) => {
      routes(router);
      board.register(router);
      registerReflection(router, HOST_FILES);
    },
  });
  await using server = await listen({
    host: config.bindAddress,
    port: options.port,
    handler: serveMetrics(calls, { verifier, render: metrics.render }),
    keys: "present",
    drainMs: config.shutdownTimeout,
    ...(await tlsOf(config)),
  });
  board.set("", "serving");
  const scheme = config.tlsCertificatePath === null ? "http" : "https";
  const url = `${scheme}://${config.advertiseAddr}:${server.port}`;
  log.info({ url }, "serving");
  const heartbeat = options.heartbeat === "given" ? { heartbeat: "given" } : {};
  process.stdout.write(`${JSON.stringify({ event: "ready", url, pid: process.pid, ...heartbeat })}\n`);
  if (options.heartbeat === "given") beat();

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

/** Says each second, until the process ends, that its event loop turns. A parent that does not read gets one line and no more. */
function beat(): void {
  // A parent that is gone is noticed by its end of stdin.
  process.stdout.on("error", () => undefined);
  setInterval(() => {
    if (process.stdout.writableLength === 0) process.stdout.write('{"event":"alive"}\n');
  }, HEARTBEAT_MS).unref();
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
