import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { idOfStateFile, parseStateFile } from "../../packages/sandbox-host/src/runtime/gvisor/container/state-file.ts";

/** Memory of a process in KiB, pages that others have too counted by their share. */
export function pssKib(pid: number): number {
  const text = readFileSync(`/proc/${String(pid)}/smaps_rollup`, "utf8");
  return Number(/^Pss:\s+(\d+) kB$/m.exec(text)?.[1]);
}

export interface ServiceUse {
  readonly rssKib: number;
  readonly descriptors: number;
}

/** What a service process holds. */
export function serviceUse(pid: number): ServiceUse {
  const status = readFileSync(`/proc/${String(pid)}/status`, "utf8");
  return {
    rssKib: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]),
    descriptors: readdirSync(`/proc/${String(pid)}/fd`).length,
  };
}

/** The processes of the sandboxes of a home, by runsc's own files. */
export function sandboxesOf(home: string): readonly { readonly sentryPid: number; readonly goferPid: number }[] {
  const directory = join(home, "hosts/local-1/containers/runsc");
  return readdirSync(directory).flatMap((name) => {
    const state =
      idOfStateFile(name) === undefined ? undefined : parseStateFile(readFileSync(join(directory, name), "utf8"));
    // A sandbox that stands by has no gofer; once a session is in it, that one has.
    return state === undefined || state.goferPid === 0
      ? []
      : [{ sentryPid: state.sandboxPid, goferPid: state.goferPid }];
  });
}

/** Memory that the machine could give to somebody, in KiB. */
export function availableKib(): number {
  return Number(/^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]);
}
