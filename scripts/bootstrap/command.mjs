import { spawn } from "node:child_process";

const TAIL_BYTES = 16 * 1024;

const running = new Set();

// A script that is told to stop takes the commands that it has started along.
process.on("exit", () => {
  for (const child of running) child.kill("SIGTERM");
});

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
 * Runs a command to its end with bounded capture and a deadline, and answers what happened. It never throws for a
 * failing command: a command that cannot be started answers code 127.
 */
export function runCommand(argv, { cwd, env, timeoutMs, input = "" }) {
  const [file, ...args] = argv;
  return new Promise((resolve) => {
    const child = spawn(file, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"] });
    running.add(child);
    let tail = "";
    let stdout = "";
    const keep = (text) => {
      tail = (tail + text).slice(-TAIL_BYTES);
    };
    const deadline = setTimeout(() => {
      keep(`\nstopped: no result within ${timeoutMs / 1000} s\n`);
      child.kill("SIGKILL");
    }, timeoutMs);
    const finish = (code, signal) => {
      clearTimeout(deadline);
      running.delete(child);
      resolve({ argv, code, signal, stdout, tail });
    };
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
    child.on("close", finish);
  });
}

/** Like `runCommand`, for commands that must succeed. */
export async function requireCommand(argv, options) {
  const result = await runCommand(argv, options);
  if (result.code !== 0) throw new CommandFailure(result);
  return result;
}
