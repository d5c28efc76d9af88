import { closeSync, readdirSync, readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";

const CLOSE_ON_EXEC = 0o2000000;
const LAST_STANDARD = 2;
/** Requests to stop that follow each other faster than this are one. */
const SAME_REQUEST_MS = 1_000;
const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Closes what the process has inherited besides its standard streams: every child would inherit it in turn, runsc too.
 * Node's own descriptors are closed on exec, so one that is not was inherited.
 */
export function closeInherited(): void {
  for (const name of readdirSync("/proc/self/fd")) {
    const fd = Number(name);
    if (fd > LAST_STANDARD && isInherited(fd)) closeSync(fd);
  }
}

function isInherited(fd: number): boolean {
  try {
    const [, flags] = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${String(fd)}`, "utf8")) ?? [];
    return flags !== undefined && (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) === 0;
  } catch {
    // The one that the directory was read by is closed.
    return false;
  }
}

/**
 * Makes V8 count buffers to all that the process holds. By itself this release counts what was allocated of them since the last
 * collection to the JavaScript heap, which is small here: it then collects everything for every 15 MiB of a tool's output,
 * which takes a third of the processor time of a stream. Later releases count like this by themselves and do not know the flag.
 *
 * Between collections a process holds a few dozen MiB more.
 */
export function countExternalMemory(): void {
  setFlagsFromString("--external-memory-accounted-in-global-limit");
}

/** Calls `onRequest` when the process is asked to stop: `again` if it was asked before. */
export function onStopRequest(onRequest: (which: "first" | "again") => void): void {
  let firstMs: number | undefined;
  for (const signal of STOP_SIGNALS) {
    process.on(signal, () => {
      // One request may arrive several times: from the terminal, from the parent, and once per thread of a dying parent.
      const isFirst = firstMs === undefined;
      firstMs ??= performance.now();
      if (isFirst) onRequest("first");
      else if (performance.now() - firstMs > SAME_REQUEST_MS) onRequest("again");
    });
  }
}

/** Ends the process on a failure that has no handler: sandboxes go on, and the next start recovers. */
export function endOnUnhandled(): void {
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (thrown: unknown) => {
      const text = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
      process.stderr.write(`${event}: ${text}\n`);
      process.exit(1);
    });
  }
}
