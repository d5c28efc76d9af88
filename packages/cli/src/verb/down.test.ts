import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { identifyProcess, systemClock } from "@turnbox/core";
import { createHarness, type Harness, installServices } from "../cli-harness.suite.ts";
import { createServices, newWorld } from "@turnbox/client/fake";

/** Other processes take their time. */
const REAL_TIME = { clock: systemClock };

let harness: Harness;

beforeEach(async () => {
  harness = await createHarness(createServices(newWorld()));
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

/** A process that holds a lock, as a server does from its first moment to its last. */
async function startHolder(
  lock: string,
  script = "process.on('SIGTERM', () => process.exit(0));",
): Promise<ChildProcess> {
  const child = spawn(process.execPath, ["-e", `${script} setInterval(() => {}, 1000); console.log('up');`], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(child.stdout, "data");
  await writeFile(join(harness.home, lock), JSON.stringify({ ...identifyProcess(child.pid ?? 0), nonce: "x" }));
  return child;
}

describe("a home whose server runs", () => {
  let child: ChildProcess;

  beforeEach(async () => {
    // No server.json: it is starting, or stopping.
    child = await startHolder("orchestrator.lock");
  });

  afterEach(() => {
    child.kill("SIGKILL");
  });

  it("takes no second server, and is not reset", async () => {
    for (const args of [["up"], ["reset", "--yes"]]) {
      const ran = await harness.run(args);
      expect(ran.exitCode).toBe(1);
      expect(ran.stderr).toMatch(new RegExp(`^HOME_IN_USE: .*process ${String(child.pid)}`));
    }
    expect(await readdir(harness.home)).toEqual(["home.json", "orchestrator.lock", "token"]);
  });

  it("is left by its server on `down`, and with --all by its frozen sandboxes too", async () => {
    const host = join(harness.home, "hosts", "h1");
    await mkdir(host, { recursive: true });
    await installServices(harness.home, {
      host: `import { writeFileSync } from "node:fs"; writeFileSync(process.argv[4] + "/ended", process.argv.slice(2).join(" "));`,
    });
    expect((await harness.run(["down", "--all", "--json"], REAL_TIME)).json()).toEqual({
      home: harness.home,
      stopped: true,
      pid: child.pid,
      hostPids: [],
      endedHosts: [host],
    });
    expect(identifyProcess(child.pid ?? 0)).toBeUndefined();
    expect(await readFile(join(host, "ended"), "utf8")).toBe(`end-all --home ${host}`);
  });
});

describe("turnbox down", () => {
  it("does not come back before the server has ended, whatever became of its record", async () => {
    const marker = join(harness.home, "ended");
    const script = `process.on("SIGTERM", () => setTimeout(() => {
      require("node:fs").writeFileSync(${JSON.stringify(marker)}, ""); process.exit(0); }, 300));`;
    const child = await startHolder("orchestrator.lock", script);
    try {
      expect((await harness.run(["down", "--json"], REAL_TIME)).json()).toMatchObject({
        stopped: true,
        pid: child.pid,
      });
      expect(await readFile(marker, "utf8")).toBe("");
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("ends hosts that a killed server has left behind, and waits for them", async () => {
    await mkdir(join(harness.home, "hosts", "h1"), { recursive: true });
    const child = await startHolder("hosts/h1/host.lock");
    try {
      expect((await harness.run(["reset", "--yes"])).stderr).toMatch(/^HOME_IN_USE: a sandbox-host/);
      expect((await harness.run(["down", "--json"], REAL_TIME)).json()).toEqual({
        home: harness.home,
        stopped: true,
        hostPids: [child.pid],
        endedHosts: [],
      });
      expect(identifyProcess(child.pid ?? 0)).toBeUndefined();
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("says when the server does not end in time", async () => {
    const child = await startHolder("orchestrator.lock", "process.on('SIGTERM', () => {});");
    try {
      const ran = await harness.run(["down", "--timeout", "1s"]);
      expect(ran.exitCode).toBe(1);
      expect(ran.stderr).toMatch(new RegExp(`^DEADLINE_EXCEEDED: process ${String(child.pid)} `));
    } finally {
      child.kill("SIGKILL");
    }
  });

  it("leaves a process alone that took the pid of a dead server", async () => {
    const dead = { ...identifyProcess(process.pid), startTicks: "1" };
    await writeFile(join(harness.home, "orchestrator.lock"), JSON.stringify(dead));
    await writeFile(join(harness.home, "server.json"), JSON.stringify({ url: "http://127.0.0.1:1", ...dead }));
    expect((await harness.run(["down", "--json"])).json()).toMatchObject({ stopped: false });
  });
});
