import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";

const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP"];
const PDEATH_TOOL = "/usr/bin/setpriv";

/** How a shell reports this end: the code itself, or 128 plus the signal. */
export function exitCodeOf({ code, signal }) {
  return signal === null ? code : 128 + constants.signals[signal];
}

/**
 * Where the kernel can do it, the child gets a SIGTERM when this process dies without a chance to say so (SIGKILL).
 * `setpriv` replaces itself with the command, so the pid is the child's own.
 */
const boundToUs = (argv) =>
  process.platform === "linux" && existsSync(PDEATH_TOOL) ? [PDEATH_TOOL, "--pdeathsig", "TERM", "--", ...argv] : argv;

/**
 * Runs one child in the foreground and answers how it ended. Signals that reach this process go on to it, every time
 * they come. It leads a process group of its own: a Ctrl-C at the terminal would otherwise reach it twice, once
 * directly, and a second signal means "at once" to a service that is shutting down.
 */
export function startChild(argv, { cwd, env, stdio = "inherit" }) {
  const [file, ...args] = boundToUs(argv);
  const child = spawn(file, args, { cwd, env, stdio, detached: true });
  const forwards = FORWARDED.map((signal) => [signal, () => child.kill(signal)]);
  for (const [signal, forward] of forwards) process.on(signal, forward);
  const ended = new Promise((resolve) => {
    const finish = (end) => {
      for (const [signal, forward] of forwards) process.off(signal, forward);
      resolve(end);
    };
    child.on("error", (cause) => {
      process.stderr.write(`${file}: ${cause.message}\n`);
      finish({ code: 127, signal: null });
    });
    child.on("exit", (code, signal) => finish({ code, signal }));
  });
  const killGroup = () => {
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch (cause) {
      if (cause.code !== "ESRCH") throw cause;
    }
  };
  return { ended, stop: (signal) => child.kill(signal), killGroup };
}

/** Ends a child whose user has gone: it is asked, asked again, and at last killed with its whole group. */
export function endChild(child, { againMs = 30_000, killMs = 60_000 } = {}) {
  child.stop("SIGTERM");
  const timers = [setTimeout(() => child.stop("SIGTERM"), againMs), setTimeout(child.killGroup, killMs)];
  return child.ended.finally(() => timers.forEach(clearTimeout));
}
