import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createChildCommandRunner, identifyProcess, systemClock } from "@turnbox/core";
import { readChild, readWaiter, startWaiter, tendOutput } from "./waiter.ts";

const DEPS = { runner: createChildCommandRunner(), clock: systemClock, signal: new AbortController().signal };
const LIMIT_BYTES = 1024;
const DEADLINE_MS = 20_000;

async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`not in time: ${what}`);
    await delay(5);
  }
}

const processIds = (): readonly number[] => readdirSync("/proc").map(Number).filter(Number.isInteger);

/** The words that a process was started with; one that has ended had none. */
function argumentsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").join(" ").trim();
  } catch {
    return "";
  }
}

function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return Number.NaN;
  }
}

describe("the guard of an output that is too large", () => {
  let directory: string;
  let service: ChildProcess;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "waiter-"));
    service = spawn("sleep", ["600"]);
  });
  afterEach(async () => {
    service.kill("SIGKILL");
    process.kill((await readChild(directory)) ?? Number.NaN, "SIGKILL");
    await until("the end of the waiter", async () => (await readWaiter(directory)).kind !== "running");
    await rm(directory, { recursive: true });
  });

  const at = (name: string): string => join(directory, name);
  const start = async (guard: string): Promise<void> => {
    await startWaiter(DEPS, {
      directory,
      outputPath: at("output"),
      command: ["/bin/sh", "-c", `head -c ${2 * LIMIT_BYTES} /dev/zero; exec sleep 600`],
      guard: { outputBytes: LIMIT_BYTES, command: ["/bin/sh", "-c", guard] },
    });
  };
  /** Settles when the guard has found that a service tends the output: it rests for two seconds then, and not for half of one. */
  const looked = async (): Promise<void> => {
    const waiter = parentOf((await readChild(directory)) ?? 0);
    await until("the guard to rest", () =>
      processIds().some((pid) => argumentsOf(pid) === "sleep 2" && parentOf(parentOf(pid)) === waiter),
    );
  };

  it("does nothing while the service that tends it lives, and acts when that has died", async () => {
    await start(`touch '${at("acted")}'`);
    await tendOutput(DEPS, directory, identifyProcess(service.pid ?? 0));
    await looked();
    expect(existsSync(at("acted"))).toBe(false);
    service.kill("SIGKILL");
    await until("the guard to act", () => existsSync(at("acted")));
  }, 60_000);

  it("does nothing once another service has taken over, which waits for what it is doing", async () => {
    await start(`touch '${at("acting")}'; sleep 0.3; touch '${at("acted")}'`);
    await tendOutput(DEPS, directory, { pid: service.pid ?? 0, startTicks: "0", bootId: "" });
    await until("the guard to act", () => existsSync(at("acting")));
    await tendOutput(DEPS, directory);
    expect(existsSync(at("acted"))).toBe(true);
    await rm(at("acted"));
    await looked();
    expect(existsSync(at("acted"))).toBe(false);
  }, 60_000);
});
