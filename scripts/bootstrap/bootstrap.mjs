import path from "node:path";
import { buildSteps } from "./build.mjs";
import { endChild, startChild } from "./child.mjs";
import { root, toolchainFolder } from "./layout.mjs";
import { takeLock } from "./lock.mjs";
import { watchParent } from "./parent.mjs";
import { describeFailure, runStep, StepFailure } from "./step.mjs";
import { provideSystemParts } from "./system.mjs";
import { createToolchain } from "./toolchain.mjs";

const print = (line) => process.stdout.write(`${line}\n`);

/** Brings the clone and the machine to the state in which the services run. Only one process per clone does so at a time. */
async function bringUp(toolchain) {
  const startedMs = performance.now();
  print("bootstrap");
  const release = await takeLock(path.join(toolchainFolder, "lock"), { print });
  try {
    await runStep({ ...toolchain.step, print });
    for (const step of buildSteps(toolchain)) await runStep({ ...step, print });
    await provideSystemParts({ env: toolchain.environment, print });
  } finally {
    release();
  }
  print(`bootstrap: ready in ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
}

/**
 * The frame of every script: bootstrap, then `work`, whose answer is the exit code. `work` starts its commands with
 * `run`, which keeps them tied to this process: they get its signals, and they end when the parent has gone.
 */
export async function main(work) {
  const running = new Set();
  let endCode;
  /** While commands run they have the signal themselves and end in their own way; nothing further is started. */
  const quit = (code) => {
    endCode ??= code;
    if (running.size === 0) process.exit(endCode);
  };
  // A reader of our output that has gone (`| head`) is no reason to leave the commands alone.
  process.stdout.on("error", () => undefined);
  process.on("SIGINT", () => quit(130));
  process.on("SIGTERM", () => quit(143));
  process.on("SIGHUP", () => quit(129));
  watchParent({
    env: process.env,
    onGone: () => {
      quit(143);
      for (const child of running) void endChild(child);
    },
  });
  const toolchain = await createToolchain(process.env);
  /** What wants to start a command after a signal waits here; the last command that ends, ends the process. */
  const endAlone = async () => {
    await Promise.all([...running].map((child) => child.ended));
    process.exit(endCode);
  };
  const run = async (argv, options = {}) => {
    if (endCode !== undefined) return await endAlone();
    const child = startChild(argv, { cwd: root, ...options, env: { ...toolchain.environment, ...options.env } });
    running.add(child);
    options.onStart?.(child);
    const end = await child.ended;
    running.delete(child);
    return end;
  };
  try {
    await bringUp(toolchain);
    process.exitCode = await work({ run, print, toolchain });
  } catch (cause) {
    if (!(cause instanceof StepFailure)) throw cause;
    print(describeFailure(cause));
    process.exitCode = 1;
  }
}
