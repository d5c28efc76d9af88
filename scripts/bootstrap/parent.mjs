import { identify, isAlive, readProcess } from "./process-identity.mjs";

const POLL_MS = 250;

/**
 * The processes whose end means that nobody waits for this script any more: its parent and, under `npm run`, npm itself.
 * npm starts scripts through a shell; it passes a SIGTERM to that shell, which dies without telling us, and a killed npm
 * leaves that shell alive.
 */
function guardians(env) {
  const pids = [process.ppid];
  const grandparent = readProcess(process.ppid)?.parentPid;
  if (env.npm_lifecycle_event !== undefined && grandparent !== undefined && grandparent > 1) pids.push(grandparent);
  return pids.map(identify);
}

/**
 * Calls `onGone` once when a guardian has gone. Started first of all, so that an end during the bootstrap is noticed too.
 * A script that is started detached, by init itself, has no parent to lose.
 */
export function watchParent({ env, onGone }) {
  const parentPid = process.ppid;
  const watched = guardians(env);
  if (parentPid <= 1) return { stop: () => undefined };
  const timer = setInterval(() => {
    if (process.ppid === parentPid && watched.every(isAlive)) return;
    clearInterval(timer);
    onGone();
  }, POLL_MS);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}
