import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFileSync, realpathSync } from "node:fs";
import { rm } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Canary, createCanary } from "../support/canary.ts";
import { startHost, type TestHost } from "../support/host.ts";
import { bash, createSession, destroy, script } from "../support/host-calls.ts";
import { run } from "../support/process.ts";
import { createRecorder, type Recorder } from "../support/recorder.ts";
import { SYSCALL_PROGRAM } from "../support/syscall-program.ts";

let host: TestHost;
let recorder: Recorder;
let canary: Canary;
beforeAll(async () => {
  canary = createCanary();
  recorder = await createRecorder(["runsc"]);
  // Started by somebody who has a file open at a descriptor that is inherited.
  const launcher = ["/bin/bash", "--norc", "-c", 'exec 200</etc/shadow; exec "$@"', "bash"];
  host = await startHost({ env: { PATH: recorder.path }, launcher });
  await createSession(host, "a");
  await installProgram("a");
  await script(host, "a", "echo 'agent:x:1000:1000::/:/bin/bash' >> /etc/passwd");
}, 120_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
  recorder[Symbol.dispose]();
  canary.expectUntouched();
  canary[Symbol.dispose]();
}, 120_000);

/** Puts the program that makes system calls into a session, for all its users. */
async function installProgram(sessionId: string): Promise<void> {
  const stdin = SYSCALL_PROGRAM.toString("base64");
  const { exitCode } = await bash(host, sessionId, "cat > /bin/sc && chmod 755 /bin/sc", { stdin });
  expect(exitCode).toBe(0);
}

function sha256(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

/** What a list of system calls came to, by their names, as guest root or as a user of its own. */
async function callAll(calls: Readonly<Record<string, string>>, user: "root" | "agent") {
  const names = Object.keys(calls);
  const lines = Object.values(calls).map((args) => `/bin/sc ${args} 2>&1 | head -1`);
  const command = user === "root" ? ["bash"] : ["su", "-s", "/bin/bash", "agent"];
  const stdin = Buffer.from(lines.join("\n")).toString("base64");
  const { content } = await bash(host, "a", command.join(" "), { stdin });
  const results = content.trim().split("\n").map(Number);
  expect(results).toHaveLength(names.length);
  return Object.fromEntries(names.map((name, index) => [name, results[index] ?? NaN]));
}

/** Calls that would reach the machine if they worked. */
const FORBIDDEN: Readonly<Record<string, string>> = {
  "socket(AF_PACKET, SOCK_RAW)": "s 41 17 3 768",
  "socket(AF_INET, SOCK_RAW, ICMP)": "s 41 2 3 1",
  "socket(AF_INET6, SOCK_RAW, ICMPV6)": "s 41 10 3 58",
  "bpf(BPF_MAP_CREATE)": "s 321 0 z 120",
  io_uring_setup: "s 425 8 z",
  "ptrace(PTRACE_ATTACH, 1)": "s 101 16 1 0 0",
  init_module: "s 175 z 4096 z",
  finit_module: "s 313 0 z 0",
  kexec_load: "s 246 0 0 z 0",
  mount: "s 165 z z z 0 0",
  pivot_root: "s 155 z z",
  "unshare(CLONE_NEWNS)": "s 272 131072",
  "unshare(CLONE_NEWNET)": "s 272 1073741824",
  chroot: "s 161 z",
  reboot: "s 169 -18751827 672274793 1126301404",
  "process_vm_readv(1)": "s 310 1 z 1 z 1 0",
  "iopl(3)": "s 172 3",
  userfaultfd: "s 323 0",
  fanotify_init: "s 300 0 0",
  pidfd_open: "s 434 1 0",
  perf_event_open: "s 298 z 0 -1 -1 0",
};
/** EPERM, ENODEV, EINVAL, ENOSYS, EAFNOSUPPORT. */
const REFUSALS: ReadonlySet<number> = new Set([-1, -19, -22, -38, -97]);

describe("code in a sandbox, on a real host", () => {
  it("attack 18: no descriptor of the service reaches runsc, and no working directory leads out by one", async () => {
    for (let fd = 0; fd <= 64; fd += 8) {
      const ran = bash(host, "a", "pwd; ls", { params: { cmd: "pwd; ls /", cwd: `/proc/self/fd/${fd + 3}` } });
      await expect(ran).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    }
    const open = "for n in $(seq 3 254); do [ -e /proc/self/fd/$n ] && readlink /proc/self/fd/$n; done; true";
    expect(await script(host, "a", open)).toBe("");
    const started = recorder.started();
    for (const command of ["run", "exec", "--version"])
      expect(started.some(({ args }) => args.includes(command))).toBe(true);
    expect(started.filter(({ descriptors }) => descriptors.length > 0)).toEqual([]);
    // The recorder would have seen one, and a legal working directory is taken.
    const recorded = await run("/bin/bash", ["-c", "exec 7</etc/passwd; exec runsc --version"], {
      env: { PATH: recorder.path },
    });
    expect(recorded.exitCode).toBe(0);
    const seen = recorder.started().findLast(({ args }) => args.includes("--version"));
    expect([seen?.args, seen?.descriptors.includes(7)]).toEqual([["--version"], true]);
    await script(host, "a", "mkdir -p /workspace/legal");
    expect((await bash(host, "a", "", { params: { cmd: "pwd", cwd: "legal" } })).content).toBe("/workspace/legal\n");
  }, 60_000);

  it("attack 19: no write to the programs of processes reaches runsc, or what all sandboxes share", async () => {
    const runsc = realpathSync((await run("/bin/sh", ["-c", "command -v runsc"])).stdout.trim());
    const shared = join(host.dataDirectory, "containers/init/busybox");
    const programs = [runsc, shared, "/bin/busybox", "/bin/bash-static"];
    const before = programs.map(sha256);
    await createSession(host, "overwriter");
    const attempts = "for p in /proc/[0-9]* /proc/self; do : > $p/exe; echo x >> $p/exe; cat /bin/sh > $p/exe; done";
    // In the shell that all sandboxes share: the agent's own may well be overwritten, it is the agent's file.
    const loop = `n=0; while [ $n -lt 200 ]; do ${attempts}; n=$((n+1)); done`;
    await bash(host, "overwriter", `(/run/turnbox/busybox sh -c '${loop}' >/dev/null 2>&1 &)`);
    for (let call = 0; call < 5; call += 1) await bash(host, "overwriter", "true").catch(() => undefined);
    await bash(host, "overwriter", attempts).catch(() => undefined);
    expect(programs.map(sha256)).toEqual(before);
    await destroy(host, "overwriter");
    expect(await script(host, "a", "echo old > /tmp/own; echo new > /tmp/own; cat /tmp/own")).toBe("new\n");
  }, 60_000);

  it.each(["root", "agent"] as const)(
    "attack 22: system calls that would reach the machine fail for %s",
    async (user) => {
      const keysBefore = readFileSync("/proc/keys", "utf8");
      const results = await callAll(FORBIDDEN, user);
      for (const [name, result] of Object.entries(results))
        expect([name, result, REFUSALS.has(result)]).toEqual([name, result, true]);
      // Keyrings are the sandbox's own: the machine has no such key.
      const { keyring } = await callAll({ keyring: "s 250 0 -3" }, user);
      if (keyring !== undefined && keyring > 0) {
        const id = keyring.toString(16).padStart(8, "0");
        for (const keys of [keysBefore, readFileSync("/proc/keys", "utf8")]) expect(keys).not.toContain(id);
      }
      const legal = await callAll({ getppid: "s 110", socket: "s 41 2 1 0", "unix socket": "s 41 1 1 0" }, user);
      for (const [name, result] of Object.entries(legal)) expect([name, result >= 0]).toEqual([name, true]);
    },
    60_000,
  );

  it("attack 26: sockets and FIFOs of the machine are out of reach, also if they are in the session's own files", async () => {
    const root = await rootOf("a");
    const abstract = `turnbox-attack-${process.pid}`;
    let connections = 0;
    const listen = async (path: string): Promise<Server> => {
      const server = createServer((socket) => {
        connections += 1;
        socket.destroy();
      });
      await new Promise<void>((resolve) => server.listen(path, resolve));
      return server;
    };
    const servers = await Promise.all([listen(join(root, "workspace/host.sock")), listen(`\0${abstract}`)]);
    await run("mkfifo", [join(root, "workspace/host.fifo")]);
    try {
      for (const path of ["/workspace/host.sock", `@${abstract}`, "/run/systemd/private", "/var/run/docker.sock"])
        expect([path, Number(await script(host, "a", `sc u ${path}`)) < 0]).toEqual([path, true]);
      const opened = await bash(
        host,
        "a",
        "timeout 2 cat host.fifo; echo $?; (echo x | timeout 2 tee host.fifo) >/dev/null",
      );
      expect(opened.content).not.toMatch(/^0\n/);
      expect(connections).toBe(0);
      // The machine itself gets through, and is counted.
      for (const path of [join(root, "workspace/host.sock"), `\0${abstract}`]) await once(connect(path), "close");
      expect(connections).toBe(2);
    } finally {
      for (const server of servers) server.close();
      await rm(join(root, "workspace/host.fifo"), { force: true });
    }
    expect(await script(host, "a", "mkfifo own; (echo through > own &); timeout 20 cat own")).toBe("through\n");
    // One of its own is found: it takes datagrams only, so it refuses (ECONNREFUSED) where nothing else says ENOENT.
    const own =
      "(syslogd -n >/dev/null 2>&1 &); until [ -S /dev/log ]; do sleep 0.1; done; sc u /dev/log; sc u /dev/none; killall syslogd";
    expect(await script(host, "a", own)).toBe("-111\n-2\n");
  }, 60_000);
});

/** Where a session's files are on the machine, found by a file that it makes. */
async function rootOf(sessionId: string): Promise<string> {
  await script(host, sessionId, `touch /${sessionId}.mark`);
  const { stdout } = await run("find", [
    join(host.dataDirectory, "mnt"),
    "-maxdepth",
    "4",
    "-name",
    `${sessionId}.mark`,
  ]);
  return dirname(stdout.trim());
}
