import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { readProcess } from "../../scripts/bootstrap/process-identity.mjs";

const frame = path.join(import.meta.dirname, "child/frame.mjs");
const DEADLINE_MS = 15_000;

async function until(isDone: () => boolean, what: string): Promise<void> {
  const deadlineMs = Date.now() + DEADLINE_MS;
  while (!isDone()) {
    if (Date.now() > deadlineMs) throw new Error(`not within ${DEADLINE_MS} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    // A process that has ended and waits for its parent to notice is as good as gone.
    return readProcess(pid)?.state !== "Z";
  } catch {
    return false;
  }
};

const started: number[] = [];
afterEach(() => {
  for (const pid of started.splice(0)) if (isAlive(pid)) process.kill(pid, "SIGKILL");
});

/** Starts the frame below `argv` and waits until it and its child run. */
async function start(argv: readonly string[], env: NodeJS.ProcessEnv = process.env) {
  const [file = "", ...args] = argv;
  const top: ChildProcess = spawn(file, args, { stdio: ["ignore", "pipe", "inherit"], env });
  let output = "";
  top.stdout?.setEncoding("utf8").on("data", (text: string) => (output += text));
  const pidOf = (name: string) => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(output)?.[1] ?? 0);
  await until(() => pidOf("frame") > 0 && pidOf("child") > 0, "the start of frame and child");
  const pids = { top: top.pid ?? 0, frame: pidOf("frame"), child: pidOf("child") };
  started.push(...Object.values(pids));
  return { pids, top, output: () => output };
}

// The trailing command keeps the shell from replacing itself with the frame.
const belowShell = ["sh", "-c", `"${process.execPath}" "${frame}"; exit $?`];

describe("a script with a child", () => {
  it("passes every signal on, and the child's exit code back", async () => {
    const { pids, top, output } = await start([process.execPath, frame]);
    for (const count of [1, 2]) {
      process.kill(pids.frame, "SIGINT");
      await until(() => output().split("got SIGINT").length === count + 1, "a signal at the child");
    }
    process.kill(pids.frame, "SIGTERM");
    await until(() => top.exitCode !== null, "the end of the script");
    expect(top.exitCode).toBe(7);
    expect(isAlive(pids.child)).toBe(false);
  });

  it("ends its child when its parent has gone", async () => {
    const { pids, output } = await start(belowShell);
    process.kill(pids.top, "SIGKILL");
    await until(() => !isAlive(pids.child) && !isAlive(pids.frame), "the end of frame and child");
    expect(output()).toContain("got SIGTERM");
  });

  it("ends its child when npm has gone and left its shell alive", async () => {
    const npm = ["sh", "-c", `sh -c '"${process.execPath}" "${frame}"; exit $?'; exit $?`];
    const { pids, output } = await start(npm, { ...process.env, npm_lifecycle_event: "start" });
    process.kill(pids.top, "SIGKILL");
    await until(() => !isAlive(pids.child) && !isAlive(pids.frame), "the end of frame and child");
    expect(output()).toContain("got SIGTERM");
  });

  it("leaves no child behind when it is killed itself", async () => {
    const { pids } = await start([process.execPath, frame]);
    process.kill(pids.frame, "SIGKILL");
    await until(() => !isAlive(pids.child), "the end of the child");
  });
});
