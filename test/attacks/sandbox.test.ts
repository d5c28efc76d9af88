import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { processesWith } from "../support/process.ts";
import { startServer, type TestServer } from "../support/server.ts";

const CANARY = "turnbox-canary-3f1c";
let server: TestServer;
let id: string;
beforeAll(async () => {
  server = await startServer({ env: { CANARY_SECRET: CANARY } });
  id = String((await server.json("create"))["sandboxId"]);
}, 120_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
}, 120_000);

const sh = (script: string) => server.cli("exec", id, "--no-stdin", "--", "bash", "-c", script);

describe("what a sandbox sees", () => {
  it("attack 64: nothing of the service's environment, token or paths, in its own environment, /proc and mounts", async () => {
    const seen = await sh(
      "env; cat /proc/*/environ /proc/*/cmdline /proc/mounts /proc/self/mountinfo 2>/dev/null | tr '\\0' '\\n'",
    );
    expect(seen.stdout).toContain("PATH=");
    for (const secret of [CANARY, server.token, server.home]) expect(seen.stdout).not.toContain(secret);
  }, 60_000);

  it("attack 21: no kernel memory, no host kernel log, no sysrq", async () => {
    expect((await sh("dmesg")).stdout).toContain("gVisor");
    for (const path of [
      "/proc/kcore",
      "/dev/mem",
      "/dev/kmem",
      "/sys/firmware/dmi/tables/DMI",
      "/proc/sysrq-trigger",
    ]) {
      expect([path, (await sh(`head -c 1 ${path} 2>/dev/null | wc -c`)).stdout]).toEqual([path, "0\n"]);
    }
    expect((await sh("head -c 1 /etc/passwd | wc -c")).stdout).toBe("1\n");
  }, 60_000);

  it("attack 22: guest root has no way to mounts, devices, modules or other namespaces", async () => {
    const tries = [
      "mount -t tmpfs none /mnt",
      "mknod /tmp/dev b 8 0",
      "chroot / true",
      "insmod /x.ko",
      "ip link add x type dummy",
      "sysctl -w kernel.hostname=x",
    ];
    await sh("mkdir -p /mnt");
    for (const attempt of tries) {
      expect([attempt, (await sh(`${attempt} >/dev/null 2>&1 && echo worked || echo refused`)).stdout]).toEqual([
        attempt,
        "refused\n",
      ]);
    }
    expect((await sh("touch /tmp/ok && chown 1000 /tmp/ok && echo worked")).stdout).toBe("worked\n");
  }, 60_000);

  it("cannot empty the program that all sandboxes share, although it is mounted read-only", async () => {
    const shared = join(server.home, "hosts/local-1/containers/init/busybox");
    const before = (await stat(shared)).size;
    await sh(": > /run/turnbox/busybox; echo x > /run/turnbox/busybox; rm -f /run/turnbox/busybox");
    expect((await stat(shared)).size).toBe(before);
    expect((await sh("/run/turnbox/busybox echo intact")).stdout).toBe("intact\n");
  }, 60_000);

  it("attack 37: a process that ignores SIGTERM, double-forks and leaves its session is gone after the timeout", async () => {
    const script = "trap '' TERM; (setsid bash -c 'trap \"\" TERM; sleep 4321' &) ; (setsid sleep 4322 &); sleep 4323";
    const timedOut = await server.cli("exec", id, "--no-stdin", "--timeout", "1s", "--", "bash", "-c", script);
    expect(timedOut.exitCode).toBe(124);
    expect((await sh("ps")).stdout).not.toMatch(/sleep 432/);
  }, 60_000);
});

describe("secrets", () => {
  it("attacks 60 and 65: tokens and session variables stand in no process list and no log", async () => {
    const secret = `${CANARY}-of-session`;
    const { sandboxId } = await server.json("create", "--env", `API_KEY=${secret}`);
    const seen = await server.cli("exec", String(sandboxId), "--no-stdin", "--", "bash", "-c", "echo $API_KEY");
    expect(seen.stdout).toBe(`${secret}\n`);
    await server.cli("exec", String(sandboxId), "--no-stdin", "--timeout", "1s", "--", "sleep", "5");
    expect(processesWith(secret)).toEqual([]);
    expect(processesWith(server.token)).toEqual([]);
    for (const log of ["logs/orchestrator.log", "logs/host-local-1.log", "hosts/local-1/host.log"]) {
      const text = await readFile(join(server.home, log), "utf8");
      for (const word of [secret, server.token]) expect(text).not.toContain(word);
    }
  }, 60_000);
});
