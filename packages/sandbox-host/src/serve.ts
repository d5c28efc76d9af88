import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  acquireHomeLock,
  createLog,
  createTokenVerifier,
  loadOrCreateHomeToken,
  loadPublicKeys,
  type Log,
  openHome,
  parentDeath,
  SandboxError,
  systemClock,
  type TokenVerifier,
} from "@turnbox/core";
import { type Helper } from "./system/helper/helper.ts";
import { HelperProcess } from "./system/helper/helper-process.ts";
import { createMetrics, createRpcMeter } from "@turnbox/rpc/metrics";
import {
  createHealthBoard,
  createRpcHandler,
  type HealthBoard,
  listen,
  registerReflection,
  serveMetrics,
} from "@turnbox/rpc/server";
import { openTracing, type Tracing } from "@turnbox/rpc/trace";
import { composeBackends } from "./compose-backends.ts";
import { composeHost, type Host } from "./compose.ts";
import { type HostConfig, loadConfig, tracingEnvironment } from "./config.ts";
import type { HostOptions } from "./compose-options.ts";
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
  await using stack = new AsyncDisposableStack();
  stack.use(await acquireHomeLock(join(dataDirectory, "host.lock")));
  const log = createLog({
    name: "sandbox-host",
    level: config.logLevel,
    to: { path: join(dataDirectory, "host.log") },
  });
  const verifier = openVerifier(home);
  const tracing = stack.use(await startTracing(log));
  const helper = stack.use(new HelperProcess());
  const composed = stack.use(
    await composeHost(hostOptions(options, { config, log, helper, tracing }), { signal: options.stop }),
  );
  const shutdown = new AbortController();
  const board = createHealthBoard();
  const handler = createHandler(composed.host, { verifier, log, tracing, board, shutdownSignal: shutdown.signal });
  const server = stack.use(
    await listen({
      host: config.bindAddress,
      port: options.port,
      handler,
      keys: "present",
      drainMs: config.shutdownTimeout,
      ...(await tlsOf(config)),
    }),
  );
  board.set("", "serving");
  announce(config, server.port, { log, heartbeat: options.heartbeat });

  await untilStopped(options.stop);
  board.set("", "not_serving");
  log.info("stopping");
  await drain(server, shutdown, { stopNow: options.stopNow, timeoutMs: config.shutdownTimeout });
}

function openVerifier(home: string): TokenVerifier {
  const { id: issuer } = openHome(home);
  return createTokenVerifier({
    publicKeys: loadPublicKeys(join(home, "keys", "signing-key.pub.pem")),
    homeToken: loadOrCreateHomeToken(join(home, "token")),
    issuer,
    clock: systemClock,
  });
}

async function startTracing(log: Log): Promise<Tracing> {
  return await openTracing({
    serviceName: "turnbox-sandbox-host",
    version: HOST_VERSION,
    env: tracingEnvironment(),
    clock: systemClock,
    onProblem: (message) => {
      log.warn({ message }, "traces");
    },
  });
}

function hostOptions(
  { dataDirectory, path, crashFile }: ServeOptions,
  parts: { readonly config: HostConfig; readonly log: Log; readonly helper: Helper; readonly tracing: Tracing },
): HostOptions {
  const { config, log, helper, tracing } = parts;
  const crashPoint = crashFile === null ? {} : { crashPoint: createCrashOnRequest(crashFile) };
  const host: HostOptions = { config, dataDirectory, log, helper, path, ...crashPoint };
  if (tracing.state === "off") return host;
  return { ...host, backends: async (runner) => traceBackends(await composeBackends(host, runner), tracing) };
}

/** All that the port serves: calls, health, reflection and metrics. */
function createHandler(
  composed: Host,
  parts: {
    readonly verifier: TokenVerifier;
    readonly log: Log;
    readonly tracing: Tracing;
    readonly board: HealthBoard;
    readonly shutdownSignal: AbortSignal;
  },
): ReturnType<typeof serveMetrics> {
  const { verifier, log, tracing, board, shutdownSignal } = parts;
  const metrics = createMetrics(HOST_METRICS, { process: "shown" });
  registerHostGauges(metrics, composed);
  const routes = createRoutes(meterHost(traceTools(composed, tracing), metrics));
  const calls = createRpcHandler({
    verifier,
    log,
    clock: systemClock,
    meter: createRpcMeter(metrics, systemClock),
    outerInterceptors: [tracing.server],
    shutdownSignal,
    innerInterceptors: [createFenceInterceptor(composed.fence)],
    routes: (router) => {
      routes(router);
      board.register(router);
      registerReflection(router, HOST_FILES);
    },
  });
  return serveMetrics(calls, { verifier, render: metrics.render });
}

/** Says that the host serves: in the log, and to its parent. */
function announce(
  config: HostConfig,
  port: number,
  { log, heartbeat }: { readonly log: Log; readonly heartbeat: ServeOptions["heartbeat"] },
): void {
  const scheme = config.tlsCertificatePath === null ? "http" : "https";
  const url = `${scheme}://${config.advertiseAddr}:${port}`;
  log.info({ url }, "serving");
  const beats = heartbeat === "given" ? { heartbeat } : {};
  process.stdout.write(`${JSON.stringify({ event: "ready", url, pid: process.pid, ...beats })}\n`);
  if (heartbeat === "given") beat();
}

/** Lets calls end by themselves for a while, or until `stopNow`; then they are ended. */
async function drain(
  server: AsyncDisposable,
  shutdown: AbortController,
  { stopNow, timeoutMs }: { readonly stopNow: AbortSignal; readonly timeoutMs: number },
): Promise<void> {
  const finished = new AbortController();
  const endCalls = (): void => {
    shutdown.abort(new SandboxError("SHUTTING_DOWN", "the host is stopping"));
  };
  stopNow.addEventListener("abort", endCalls, { once: true });
  systemClock.sleep(timeoutMs, { signal: finished.signal }).then(endCalls, () => undefined);
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
