import { mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import {
  acquireHomeLock,
  type Clock,
  createLog,
  identifyProcess,
  openHome,
  parentDeath,
  type SandboxError,
  systemClock,
  writeDraft,
} from "@turnbox/core";
import { openTracing } from "@turnbox/rpc/trace";
import { composeOrchestrator } from "./compose.ts";
import { hostEnvironment, loadConfig, tracingEnvironment } from "./config.ts";
import { ORCHESTRATOR_VERSION } from "./version.ts";

export interface ServeOptions {
  readonly home: string;
  /** Overrides the configured one. */
  readonly port: number | undefined;
  readonly hostEntry: string;
  /** Where the ready line and the words for people go. */
  readonly print: (text: string) => void;
  /** Aborts when the process is asked to stop. */
  readonly stop: AbortSignal;
  readonly clock?: Clock;
}

const PARENT_POLL_MS = 500;

/**
 * Runs an orchestrator with its local hosts until it is asked to stop or its parent is gone. `<home>/orchestrator.lock`
 * is held from before anything else is touched until everything has ended; `<home>/server.json` is there from the moment
 * it is ready until its hosts have ended.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const { home, clock = systemClock } = options;
  const homeInfo = openHome(home);
  await using _lock = await acquireHomeLock(join(home, "orchestrator.lock"));
  const loaded = loadConfig(home);
  const config = options.port === undefined ? loaded : { ...loaded, port: options.port };
  using record = openServerRecord(home);
  mkdirSync(join(home, "logs"), { recursive: true, mode: 0o700 });
  const log = createLog({
    name: "orchestrator",
    level: config.logLevel,
    to: { path: join(home, "logs", "orchestrator.log") },
  });

  await using tracing = await openTracing({
    serviceName: "turnbox-orchestrator",
    version: ORCHESTRATOR_VERSION,
    env: tracingEnvironment(),
    clock,
    onProblem: (message) => {
      log.warn({ message }, "traces");
    },
  });

  const stopping = new AbortController();
  const signal = AbortSignal.any([options.stop, stopping.signal]);
  const watching = new AbortController();
  const orphaned = parentDeath({ clock, intervalMs: PARENT_POLL_MS, signal: watching.signal }).then(
    () => {
      log.warn("the parent is gone");
      stopping.abort();
    },
    () => undefined,
  );
  try {
    await using orchestrator = await composeOrchestrator(
      { config, home, homeInfo, hostEntry: options.hostEntry, hostEnv: hostEnvironment(home), clock, log, tracing },
      { signal },
    );
    log.info({ url: orchestrator.url }, "listening");
    await orchestrator.launchHosts({ signal });
    record.write(orchestrator.url);
    options.print(readyText(home, orchestrator.url));
    log.info({ url: orchestrator.url }, "ready");
    await untilAborted(AbortSignal.any([signal, orchestrator.failure]));
    if (!signal.aborted) orchestrator.failure.throwIfAborted();
    log.info("stopping");
  } catch (error) {
    // Asked to stop before it was ready: that is an end, not a failure.
    if (!signal.aborted) throw error;
  } finally {
    watching.abort();
    await orphaned;
  }
  log.info("stopped");
}

/** Where the server is, for the command line. The file is whole or not there, and only the lock's holder touches it. */
interface ServerRecord extends Disposable {
  write(url: string): void;
}

function openServerRecord(home: string): ServerRecord {
  const file = join(home, "server.json");
  const remove = (): void => {
    rmSync(file, { force: true });
  };
  // One that is here is of a server that was killed.
  remove();
  return {
    write: (url) => {
      const self = { pid: process.pid, ...identifyProcess(process.pid) };
      const content = `${JSON.stringify({ url, version: ORCHESTRATOR_VERSION, ...self })}\n`;
      renameSync(writeDraft(file, { content, mode: 0o600 }), file);
    },
    [Symbol.dispose]: remove,
  };
}

function readyText(home: string, url: string): string {
  return [
    `turnbox ready ${url}`,
    "",
    "  Try it from another terminal, in the same directory:",
    "    npx --no-install turnbox create --name demo",
    "    npx --no-install turnbox exec demo -- sh -c 'echo hello > hello.txt; ls'",
    "    npx --no-install turnbox turn demo            (seals a snapshot)",
    "    npx --no-install turnbox rm demo",
    "",
    `  home ${home}, token ${join(home, "token")}, logs ${join(home, "logs")}`,
    "  Ctrl-C stops the server; sandboxes and their files are kept.",
    "",
  ].join("\n");
}

async function untilAborted(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/** A failure for the terminal: one line `REASON: message`, one with what to do. */
export function failureText(error: SandboxError): string {
  return `${error.reason}: ${error.message}\nremedy: ${error.metadata["remedy"] ?? error.remedy}\n`;
}
