import { spawn } from "node:child_process";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { startHost } from "../support/host.ts";
import { bash, createSession } from "../support/host-calls.ts";
import { poll, processesWith, REPO, run } from "../support/process.ts";
import { environment, makeHome, startServer } from "../support/server.ts";

const CLI = join(REPO, "packages/cli/bin/turnbox.mjs");
let home: Awaited<ReturnType<typeof makeHome>>;
beforeAll(async () => {
  home = await makeHome();
});
afterAll(async () => {
  await home[Symbol.asyncDispose]();
}, 120_000);

/** Processes of the home but for zfs-fuse, which serves the whole machine and is never stopped. */
const ofHome = (): readonly string[] => processesWith(home.path).filter((line) => !/^\d+ \S*zfs-fuse /.test(line));
/** Our own ones; sandboxes that a stop has frozen are meant to stay. */
const services = (): readonly string[] => ofHome().filter((line) => !line.includes("runsc"));
const noServices = (): true | undefined => (services().length === 0 ? true : undefined);
const up = (env: Readonly<Record<string, string>> = {}) =>
  run(process.execPath, [CLI, "up"], { env: environment(home.path, env), timeoutMs: 60_000 });

describe("a server's life", () => {
  it("ends within 5 s on Ctrl-C and finds pool, template, sessions, files and the frozen sandbox again", async () => {
    let id: string;
    {
      await using first = await startServer({ home: home.path });
      id = String((await first.json("create", "--name", "kept"))["sandboxId"]);
      await first.cli("exec", id, "--no-stdin", "--", "sh", "-c", "echo kept > a; sleep 1000 & echo $! > pid");
      expect((await first.json("turn", id))["turnNumber"]).toBe(1);
      const begun = performance.now();
      expect(await first.stop("SIGINT")).toBe(0);
      expect(performance.now() - begun).toBeLessThan(5_000);
      expect(services()).toEqual([]);
    }
    await using second = await startServer({ home: home.path });
    const { sandboxes } = await second.json("ls");
    expect(sandboxes).toMatchObject([{ sandboxId: id, name: "kept", turnCount: 1, generation: 1 }]);
    const seen = await second.cli(
      "exec",
      "kept",
      "--no-stdin",
      "--",
      "sh",
      "-c",
      "cat a; kill -0 $(cat pid) && echo alive",
    );
    expect(seen.stdout).toBe("kept\nalive\n");
  }, 120_000);

  it("serves again after kill -9 of the whole server, with the running sandbox adopted", async () => {
    const first = await startServer({ home: home.path });
    await first.cli("exec", "kept", "--no-stdin", "--", "sh", "-c", "echo before > crash");
    for (const line of services()) process.kill(Number(line.split(" ")[0]), "SIGKILL");
    await poll("the services to be gone", noServices);
    await using second = await startServer({ home: home.path });
    const seen = await second.cli(
      "exec",
      "kept",
      "--no-stdin",
      "--",
      "sh",
      "-c",
      "cat crash; kill -0 $(cat pid) && echo alive",
    );
    expect(seen.stdout).toBe("before\nalive\n");
    expect(await second.json("ls")).toMatchObject({ sandboxes: [{ generation: 1 }] });
  }, 120_000);

  it("leaves no orphan when the npm process is killed", async () => {
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      const npm = spawn("npm", ["start"], {
        cwd: REPO,
        env: environment(home.path),
        stdio: ["ignore", "pipe", "ignore"],
      });
      let output = "";
      npm.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
      await poll("the ready line", () => (/^turnbox ready /m.test(output) ? true : undefined), 120_000);
      npm.kill(signal);
      await poll(`the services to be gone after ${signal}`, noServices, 25_000);
    }
  }, 300_000);

  it("tells a second server on the home, a port in use and a home of another version apart", async () => {
    await using server = await startServer({ home: home.path });
    expect(await up()).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("HOME_IN_USE") });
    await server.stop();

    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as { readonly port: number };
    const taken = await up({ TURNBOX_PORT: String(port) });
    other.close();
    expect(taken).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("PORT_IN_USE") });

    const version = join(home.path, "home.json");
    const text = await readFile(version, "utf8");
    await writeFile(version, text.replace('"version":1', '"version":99'));
    const foreign = await up();
    await writeFile(version, text);
    expect(foreign).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("HOME_VERSION_UNSUPPORTED") });
    expect(services()).toEqual([]);
  }, 120_000);

  it("refuses to start without runsc, and says why", async () => {
    const path = join(home.path, "..", "bin");
    await mkdir(path);
    // Everything that is needed but runsc, which is somewhere in these directories.
    for (const directory of ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]) {
      const { stdout } = await run("ls", [directory]);
      for (const name of stdout.split("\n").filter((entry) => entry !== "" && entry !== "runsc")) {
        await symlink(join(directory, name), join(path, name)).catch(() => undefined);
      }
    }
    const refused = await up({ PATH: path });
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("RUNTIME_UNAVAILABLE") });
    expect(refused.stderr).toContain("runsc");
    const doctor = await run(process.execPath, [CLI, "doctor", "--json"], {
      env: environment(home.path, { PATH: path }),
    });
    expect(doctor.exitCode).toBe(1);
    const { parts } = JSON.parse(doctor.stdout) as { readonly parts: readonly Record<string, unknown>[] };
    expect(parts.find(({ name }) => name === "runsc")).toMatchObject({ status: "missing", required: true });
  }, 120_000);

  it("refuses an address that is not loopback without TLS, and unknown configuration", async () => {
    expect(await up({ TURNBOX_BIND_ADDRESS: "0.0.0.0" })).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("CONFIG_INVALID"),
    });
    expect(await up({ TURNBOX_MAX_SESIONS: "3" })).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("TURNBOX_MAX_SESIONS"),
    });
  }, 120_000);

  it("ends frozen sandboxes with down --all, and keeps their files", async () => {
    const server = await startServer({ home: home.path });
    await server.cli("exec", "kept", "--no-stdin", "--", "true");
    const down = await server.cli("down", "--all");
    expect(down.exitCode).toBe(0);
    await server.stop();
    expect(ofHome()).toEqual([]);
    await using again = await startServer({ home: home.path });
    expect((await again.cli("exec", "kept", "--no-stdin", "--", "cat", "a")).stdout).toBe("kept\n");
  }, 120_000);

  it("ends what stood by for a host that was killed with down --all", async () => {
    const host = await startHost({ home: home.path });
    await createSession(host, "killed");
    await bash(host, "killed", "true");
    const spares = join(host.dataDirectory, "containers/spares");
    const ofSpare = (): readonly string[] => ofHome().filter((line) => line.includes(spares));
    await poll("a sandbox to stand by", () => (ofSpare().length > 0 ? true : undefined));
    await host.kill();
    expect(ofSpare()).not.toEqual([]);
    const down = await run(process.execPath, [CLI, "down", "--all"], { env: environment(home.path) });
    expect(down.exitCode).toBe(0);
    expect(ofHome()).toEqual([]);
  }, 120_000);
});
