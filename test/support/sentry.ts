import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestHost } from "./host.ts";
import { readRecords } from "./records.ts";

/** The container that a session has now. */
export function containerOf(host: TestHost, sessionId: string): string {
  const session = readRecords(host.dataDirectory).sessions.find(({ id }) => id === sessionId);
  const container = session?.container ?? "";
  if (container === "") throw new Error(`session ${sessionId} has no container`);
  return container;
}

/** The pids of a session's sandbox on the machine, by runsc's state file. */
export function sandboxPids(host: TestHost, sessionId: string): { readonly sentry: number; readonly gofer: number } {
  return containerPids(host, containerOf(host, sessionId));
}

/** The same of a container. */
export function containerPids(host: TestHost, id: string): { readonly sentry: number; readonly gofer: number } {
  const path = join(host.dataDirectory, "containers/runsc", `${id}_sandbox:${sandboxOf(host, id)}.state`);
  const state = JSON.parse(readFileSync(path, "utf8")) as { sandbox: { pid: number }; goferPid: number };
  return { sentry: state.sandbox.pid, gofer: state.goferPid };
}

/** The sandbox that a container is in: its own, unless it was booted in one that stood by. */
function sandboxOf(host: TestHost, id: string): string {
  try {
    return readFileSync(join(host.dataDirectory, "containers/containers", id, "sandbox"), "utf8");
  } catch {
    return id;
  }
}

/** Processor time of a session's sandbox in milliseconds, as the kernel counts it for the cgroup. */
export function cpuMsOf(host: TestHost, sessionId: string): number {
  const group = join("turnbox", sandboxOf(host, containerOf(host, sessionId)));
  for (const hierarchy of ["", ...readdirSync("/sys/fs/cgroup")]) {
    const read = (name: string): string => {
      try {
        return readFileSync(join("/sys/fs/cgroup", hierarchy, group, name), "utf8");
      } catch {
        return "";
      }
    };
    const nanoseconds = /^\d+/.exec(read("cpuacct.usage"))?.[0];
    if (nanoseconds !== undefined) return Number(nanoseconds) / 1e6;
    const microseconds = /^usage_usec (\d+)$/m.exec(read("cpu.stat"))?.[1];
    if (microseconds !== undefined) return Number(microseconds) / 1e3;
  }
  throw new Error(`no hierarchy counts the time of ${group}`);
}
