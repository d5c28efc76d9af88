import { describe, expect, it } from "@jest/globals";
import { runCommand } from "../../scripts/bootstrap/command.mjs";
import { readProcess } from "../../scripts/bootstrap/process-identity.mjs";

interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly tail: string;
}

const isAlive = (pid: number): boolean => !["Z", undefined].includes(readProcess(pid)?.state);

async function untilGone(pid: number): Promise<void> {
  const giveUpAt = performance.now() + 5000;
  while (isAlive(pid) && performance.now() < giveUpAt) await new Promise((resolve) => setTimeout(resolve, 20));
}

describe("runCommand", () => {
  const run = async (script: string, timeoutMs: number) => {
    const startedMs = performance.now();
    const result = (await runCommand(["sh", "-c", script], { cwd: "/", env: process.env, timeoutMs })) as Ended;
    return { ...result, tookMs: performance.now() - startedMs, pid: Number(/\d+/.exec(result.stdout)?.[0]) };
  };

  it("keeps its deadline when a grandchild holds the pipe, and ends the grandchild too", async () => {
    const ran = await run("sleep 20 & echo $!; wait", 300);
    expect(ran).toMatchObject({ signal: "SIGKILL" });
    expect(ran.tail).toContain("stopped: no result within 0.3 s");
    expect(ran.tookMs).toBeLessThan(10_000);
    await untilGone(ran.pid);
    expect(isAlive(ran.pid)).toBe(false);
  }, 30_000);

  it("does not wait for a daemon that the command leaves behind with its pipe, and leaves it alone", async () => {
    const ran = await run("sleep 20 & echo $!; exit 3", 15_000);
    try {
      expect(ran).toMatchObject({ code: 3, signal: null });
      expect(ran.tookMs).toBeLessThan(10_000);
      expect(isAlive(ran.pid)).toBe(true);
    } finally {
      process.kill(ran.pid, "SIGKILL");
    }
  }, 30_000);

  it("has all that was printed before the end", async () => {
    const { stdout, code } = await run("seq 1 20000; exit 0", 15_000);
    expect(code).toBe(0);
    expect(stdout.endsWith("\n20000\n")).toBe(true);
  });
});
