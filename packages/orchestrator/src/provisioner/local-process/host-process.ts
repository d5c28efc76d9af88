import { type ChildProcessByStdio, spawn } from "node:child_process";
import { mkdir, open, rename, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { createInterface, type Interface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { type Clock, SandboxError } from "@turnbox/core";
import { parseHostAnnouncement } from "./host-announcement.ts";
import { withoutMembarrier } from "./without-membarrier.ts";

export interface HostProcessSpec {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the host. */
  readonly env: Readonly<Record<string, string>>;
  /** Where its standard error is appended to. */
  readonly logPath: string;
  /** How long it may take to announce itself. */
  readonly readyTimeoutMs: number;
  /** How long it may take to end after SIGTERM. */
  readonly stopTimeoutMs: number;
}

/** A host that announced itself. Its owner stops it. */
export interface HostProcess {
  readonly url: string;
  readonly pid: number;
  /** How many signs of life it has given; undefined if it gives none. */
  readonly beats: (() => number) | undefined;
  /** Settles with how it ended, by whatever cause; never rejects. */
  readonly exited: Promise<string>;
  /** Asks it to end, waits, and ends it by force after the stop timeout. Returns when it is gone. */
  stop(): Promise<void>;
  /** Ends it by force, without a word. */
  kill(): void;
}

type HostChild = ChildProcessByStdio<Writable, Readable, null>;

/** A log beyond this size is put aside before the next start; one older copy is kept. */
const MAX_LOG_BYTES = 16 * 1024 * 1024;

/**
 * Starts a sandbox-host and waits for its announcement. It has its own process group, so that a Ctrl-C in the terminal
 * reaches it through its owner and in order; its standard input is a pipe that ends with this process, which tells it
 * that it has no owner any more. A host that fails, stays silent or is no longer wanted is ended before this throws.
 */
export async function startHostProcess(
  spec: HostProcessSpec,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<HostProcess> {
  signal.throwIfAborted();
  const child = await spawnWithLog(spec);
  const exited = new Promise<string>((resolve) => {
    child.once("error", (error) => {
      resolve(`could not be started: ${error.message}`);
    });
    child.once("exit", (code, by) => {
      resolve(describeExit(code, by));
    });
  });
  const stop = async (): Promise<void> => {
    await end(child, exited, { clock, timeoutMs: spec.stopTimeoutMs });
  };
  const over = new AbortController();
  try {
    const lines = createInterface({ input: child.stdout });
    let beats = 0;
    // Each is read, so that the host never blocks on a full pipe.
    lines.on("line", () => {
      beats += 1;
    });
    const line = await firstLine({ child, lines }, spec, { clock, signal: AbortSignal.any([signal, over.signal]) });
    const announcement = parseHostAnnouncement(line);
    if (announcement.kind === "failed") throw announcement.error;
    const { url, pid, heartbeat } = announcement;
    const kill = (): void => void child.kill("SIGKILL");
    return { url, pid, beats: heartbeat === "given" ? () => beats : undefined, exited, stop, kill };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    over.abort();
  }
}

const describeExit = (code: number | null, by: NodeJS.Signals | null): string =>
  by === null ? `exited with code ${String(code)}` : `was ended by ${by}`;

async function spawnWithLog(spec: HostProcessSpec): Promise<HostChild> {
  await mkdir(dirname(spec.logPath), { recursive: true });
  const size = await stat(spec.logPath).then(
    (found) => found.size,
    () => 0,
  );
  if (size > MAX_LOG_BYTES) await rename(spec.logPath, `${spec.logPath}.1`);
  const log = await open(spec.logPath, "a", 0o600);
  try {
    // Whatever the host starts inherits this; if it cannot be had, sandboxes start slower and the host says so.
    const { command, args } = withoutMembarrier(spec);
    return spawn(command, [...args], {
      detached: true,
      env: { ...spec.env },
      stdio: ["pipe", "pipe", log.fd],
    }) as HostChild;
  } finally {
    await log.close();
  }
}

/** The first line of the host's output. `close` comes after all output was read, so a host's last words are not lost. */
function firstLine(
  { child, lines }: { readonly child: HostChild; readonly lines: Interface },
  spec: HostProcessSpec,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<string> {
  const unreachable = (message: string): SandboxError =>
    new SandboxError("HOST_UNREACHABLE", `the host ${message}; its log is ${spec.logPath}`, {
      admitted: "no",
      metadata: { remedy: `Read ${spec.logPath}, run \`turnbox doctor\`, and start again.` },
    });
  return new Promise((resolve, reject) => {
    lines.once("line", resolve);
    child.once("error", (error) => {
      reject(unreachable(`could not be started: ${error.message}`));
    });
    child.once("close", (code, by) => {
      reject(unreachable(`${describeExit(code, by)} before it was ready`));
    });
    clock.sleep(spec.readyTimeoutMs, { signal }).then(() => {
      reject(unreachable(`did not announce itself within ${String(spec.readyTimeoutMs)} ms`));
    }, reject);
  });
}

async function end(
  child: HostChild,
  exited: Promise<string>,
  { clock, timeoutMs }: { readonly clock: Clock; readonly timeoutMs: number },
): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGTERM");
  const over = new AbortController();
  const patience = clock.sleep(timeoutMs, { signal: over.signal }).then(
    () => child.kill("SIGKILL"),
    () => undefined,
  );
  await exited;
  over.abort();
  await patience;
  child.stdin.destroy();
}
