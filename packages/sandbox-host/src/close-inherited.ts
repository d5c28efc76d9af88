import { closeSync, readdirSync, readFileSync } from "node:fs";

const CLOSE_ON_EXEC = 0o2000000;
const LAST_STANDARD = 2;

/**
 * Closes what the process has inherited besides its standard streams: every child would inherit it in turn, runsc too.
 * Node's own descriptors are closed on exec, so one that is not came from whoever started the process.
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
    // The one that the directory was read by is gone.
    return false;
  }
}
