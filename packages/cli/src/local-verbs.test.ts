import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { ERROR_TABLE, identifyProcess, systemClock } from "@turnbox/core";
import { createHarness, type Harness } from "./cli-harness.suite.ts";
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

/** Programs in the place of the services', found the way the real ones are. */
async function installServices(programs: { readonly orchestrator?: string; readonly host?: string }): Promise<void> {
  const install = async (name: string, source: string): Promise<void> => {
    const root = join(harness.home, "node_modules/@turnbox", name);
    await mkdir(root, { recursive: true });
    await writeFile(join(root, "package.json"), JSON.stringify({ version: "9.9.9", bin: `turnbox-${name}.mjs` }));
    await writeFile(join(root, `turnbox-${name}.mjs`), source);
  };
  await install("orchestrator", programs.orchestrator ?? "");
  await install("sandbox-host", programs.host ?? "");
}

describe("turnbox up", () => {
  it("starts the server's program with home, port and the host's entry, and passes its exit code", async () => {
    await installServices({
      orchestrator: `console.error(JSON.stringify(process.argv.slice(2)));
        console.log("turnbox ready http://127.0.0.1:7700"); process.exit(5);`,
    });
    const ran = await harness.run(["up", "--json"]);
    expect(ran.exitCode).toBe(5);
    expect(ran.json()).toEqual({ ready: true, url: "http://127.0.0.1:7700", home: harness.home });
    const hostEntry = join(harness.home, "node_modules/@turnbox/sandbox-host/turnbox-sandbox-host.mjs");
    expect(ran.stderr).toContain(JSON.stringify(["serve", "--home", harness.home, "--host-entry", hostEntry]));
  });

  it("leaves the port to the configuration, unless TURNBOX_PORT names one", async () => {
    await installServices({ orchestrator: `console.error(process.argv.slice(2).join(" "));` });
    expect((await harness.run(["up", "--json"])).stderr).not.toContain("--port");
    const ran = await harness.run(["up", "--json"], { variables: { TURNBOX_PORT: "7800" } });
    expect(ran.stderr).toContain("--port 7800");
  });

  it("passes on what the server has against its home or port", async () => {
    await installServices({
      orchestrator: `console.error("PORT_IN_USE: 7700 is taken\\nremedy: choose another"); process.exit(1);`,
    });
    const ran = await harness.run(["up", "--json"]);
    expect(ran.exitCode).toBe(1);
    expect(ran.json()).toMatchObject({ error: { reason: "PORT_IN_USE", message: "7700 is taken" } });
  });

  it("says what is missing where the services are not installed", async () => {
    const ran = await harness.run(["up"]);
    expect(ran.exitCode).toBe(1);
    expect(ran.stderr).toContain("COMMAND_MISSING: the package @turnbox/orchestrator is not installed");
  });
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
    await installServices({
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

describe("turnbox reset", () => {
  it("asks for yes, and does nothing without it", async () => {
    expect((await harness.run(["reset"])).exitCode).toBe(2);
    const ran = await harness.run(["reset"], { ask: () => Promise.resolve("y") });
    expect(ran.exitCode).toBe(130);
    expect(await readdir(harness.home)).toEqual(["home.json", "token"]);
  });

  it("removes the home with --yes", async () => {
    expect((await harness.run(["reset", "--yes", "--json"])).json()).toEqual({ home: harness.home, removed: true });
    await expect(readdir(harness.home)).rejects.toThrow("ENOENT");
    expect((await harness.run(["reset", "--yes", "--json"])).json()).toEqual({ home: harness.home, removed: false });
  });

  it("keeps servers out for as long as it works", async () => {
    const host = join(harness.home, "hosts", "h1");
    await mkdir(host, { recursive: true });
    const seen = join(harness.home, "..", `${basename(harness.home)}-seen`);
    await installServices({
      host: `import { copyFileSync } from "node:fs";
        copyFileSync(process.argv[4] + "/../../orchestrator.lock", ${JSON.stringify(seen)});`,
    });
    try {
      expect((await harness.run(["reset", "--yes", "--json"])).json()).toMatchObject({ removed: true });
      expect(JSON.parse(await readFile(seen, "utf8"))).toMatchObject(identifyProcess(process.pid) ?? {});
    } finally {
      await rm(seen, { force: true });
    }
  });

  it("says what to do where storage hangs, in words for the command line, and gives the home free", async () => {
    await mkdir(join(harness.home, "hosts", "h1"), { recursive: true });
    await installServices({
      host: `console.error("COMMAND_OUTCOME_UNKNOWN: zpool was ended at its deadline\\nremedy: ${ERROR_TABLE.COMMAND_OUTCOME_UNKNOWN.remedy}");
        process.exit(1);`,
    });
    const ran = await harness.run(["reset", "--yes"]);
    expect(ran.stderr).toMatch(/^COMMAND_OUTCOME_UNKNOWN: zpool.*\nremedy: Run `turnbox doctor`.*command again/);
    expect(await readdir(harness.home)).toEqual(["home.json", "hosts", "node_modules", "token"]);
  });

  it("leaves a home of another version alone", async () => {
    await writeFile(join(harness.home, "home.json"), '{"version":2,"id":"abcdefgh"}');
    const ran = await harness.run(["reset", "--yes"]);
    expect(ran.stderr).toMatch(/^HOME_VERSION_UNSUPPORTED: .*version 2/);
    expect(await readdir(harness.home)).toEqual(["home.json", "token"]);
  });

  it("leaves a directory alone that is no home of Turnbox", async () => {
    await rm(join(harness.home, "home.json"));
    await mkdir(join(harness.home, "photos"));
    const ran = await harness.run(["reset", "--yes"]);
    expect(ran.stderr).toContain("CONFIG_INVALID");
    expect(await readdir(harness.home)).toEqual(["photos", "token"]);
  });
});

describe("turnbox doctor", () => {
  it("fails where something required is missing", async () => {
    const ran = await harness.run(["doctor"]);
    expect(ran.exitCode).toBe(1);
    expect(ran.stdout).toMatch(/^orchestrator +missing$/m);
    expect(ran.stdout).toMatch(/^sandbox-host +missing$/m);
    expect(ran.stdout).toMatch(/^token +found\b/m);
    expect(ran.stdout).toMatch(/^server +found\b/m);
  });

  it("adds what the host's own doctor found", async () => {
    const parts = [
      { name: "runsc", status: "found", version: "20240729", required: true },
      { name: "nftables", status: "missing", required: false, without: "no network", remedy: "apt install nftables" },
    ];
    const config = [
      { key: "maxSessions", value: 4, source: "file" },
      { key: "storageBackend", value: "zfs", source: "default" },
    ];
    await installServices({
      host: `console.log(${JSON.stringify(JSON.stringify({ parts, config }))});`,
    });
    const ran = await harness.run(["doctor", "--json"]);
    expect(ran.exitCode).toBe(0);
    const report = ran.json() as { readonly parts: readonly { readonly name: string }[] };
    expect(report).toMatchObject({ ok: true, config });
    expect(report.parts.map(({ name }) => name)).toEqual([
      "node",
      "orchestrator",
      "token",
      "server",
      "runsc",
      "nftables",
    ]);
    expect((await harness.run(["doctor"])).stdout).toContain(
      "nftables      missing\n              without it: no network\n              remedy: apt install nftables\nmaxSessions = 4 (file)\n",
    );
  });

  it("says when the token can be read by others", async () => {
    await chmod(join(harness.home, "token"), 0o644);
    const ran = await harness.run(["doctor"]);
    expect(ran.stdout).toMatch(/^token +broken\n.* has mode 0644: other users can read it$/m);
  });
});
