import { spawn } from "node:child_process";

const TAIL_BYTES = 16 * 1024;
/** What descendants of a command that has ended may still print; one that keeps the pipe open is not waited for. */
const OUTPUT_GRACE_MS = 1000;

const running = new Set();

// A script that is told to stop takes the commands that it has started along.
process.on("exit", () => {
  for (const child of running) signalGroup(child, "SIGTERM");
});

/** Each command leads a process group of its own, so that what it has started ends with it. */
function signalGroup(child, signal) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (cause) {
    if (cause.code !== "ESRCH") throw cause;
  }
}

/** A command that did not do its work. `tail` holds the last lines that it printed. */
export class CommandFailure extends Error {
  constructor({ argv, code, signal, tail }) {
    super(`${argv.join(" ")} ended with ${signal === null ? `exit code ${code}` : `signal ${signal}`}`);
    this.name = "CommandFailure";
    this.argv = argv;
    this.code = code;
    this.tail = tail;
  }
}

/**
 * Runs a command to its end with bounded capture and a deadline, and answers what happened. At the deadline the command
 * is killed with its whole group; a daemon that a command leaves behind is left alone. It never throws for a failing
 * command: a command that cannot be started answers code 127.
 */
export function runCommand(argv, { cwd, env, timeoutMs, input = "" }) {
  const [file, ...args] = argv;
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
    running.add(child);
    let tail = "";
    let stdout = "";
    const keep = (text) => {
      tail = (tail + text).slice(-TAIL_BYTES);
    };
    let grace;
    const finish = (code, signal) => {
      clearTimeout(deadline);
      clearTimeout(grace);
      running.delete(child);
      child.stdout.destroy();
      child.stderr.destroy();
      resolve({ argv, code, signal, stdout, tail });
    };
    const finishSoon = (code, signal) => {
      clearTimeout(grace);
      grace = setTimeout(finish, OUTPUT_GRACE_MS, code, signal);
    };
    const deadline = setTimeout(() => {
      keep(`\nstopped: no result within ${timeoutMs / 1000} s\n`);
      signalGroup(child, "SIGKILL");
      // The kernel may keep even a killed process, in a call that hangs.
      finishSoon(null, "SIGKILL");
    }, timeoutMs);
    child.stdout.setEncoding("utf8").on("data", (text) => {
      keep(text);
      stdout = (stdout + text).slice(-64 * TAIL_BYTES);
    });
    child.stderr.setEncoding("utf8").on("data", keep);
    child.stdin.on("error", () => undefined);
    child.stdin.end(input);
    child.on("error", (cause) => {
      keep(`${cause.message}\n`);
      finish(127, null);
    });
    child.on("exit", (code, signal) => {
      clearTimeout(deadline);
      finishSoon(code, signal);
    });
    child.on("close", finish);
  });
}

/** Like `runCommand`, for commands that must succeed. */
export async function requireCommand(argv, options) {
  const result = await runCommand(argv, options);
  if (result.code !== 0) throw new CommandFailure(result);
  return result;
}
