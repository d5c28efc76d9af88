import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createManualClock } from "../testing/manual-clock.ts";
import { acquireHomeLock } from "./home-lock.ts";
import { openHome } from "./home-version.ts";
import { parentDeath } from "./parent-watch.ts";
import { identifyProcess, isLiving } from "./process-identity.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "process-test-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const self = () => identifyProcess(process.pid) ?? { pid: 0, startTicks: "", bootId: "" };

describe("identifyProcess", () => {
  it("names a living process and none that has ended", async () => {
    const child = spawn("sleep", ["60"]);
    const identity = identifyProcess(child.pid ?? 0);
    expect(identity !== undefined && isLiving(identity)).toBe(true);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(identity === undefined || isLiving(identity)).toBe(false);
  });

  it("does not take a reused pid, or the same one after a reboot, for the same process", () => {
    expect(isLiving({ ...self(), startTicks: "1" })).toBe(false);
    expect(isLiving({ ...self(), bootId: "another" })).toBe(false);
  });
});

describe("acquireHomeLock", () => {
  const lockPath = () => path.join(folder, "home.lock");

  it("refuses while a living process holds it, names its pid, and is free again after disposal", async () => {
    {
      await using _lock = await acquireHomeLock(lockPath());
      await expect(acquireHomeLock(lockPath())).rejects.toMatchObject({
        reason: "HOME_IN_USE",
        message: expect.stringContaining(String(process.pid)),
      });
    }
    await using _again = await acquireHomeLock(lockPath());
    expect(readdirSync(folder)).toEqual(["home.lock"]);
    expect(statSync(lockPath()).mode & 0o777).toBe(0o600);
  });

  it.each([
    ["of a dead process", () => JSON.stringify({ pid: 2 ** 22 + 1, startTicks: "5", bootId: self().bootId })],
    ["of a reused pid", () => JSON.stringify({ ...self(), startTicks: "1" })],
    ["of another boot", () => JSON.stringify({ ...self(), bootId: "before" })],
    ["that a power cut left empty", () => ""],
  ])("takes over a lock %s", async (_name, content) => {
    writeFileSync(lockPath(), content());
    await using _lock = await acquireHomeLock(lockPath());
    expect(JSON.parse(readFileSync(lockPath(), "utf8"))).toMatchObject({ pid: process.pid });
    expect(readdirSync(folder)).toEqual(["home.lock"]);
  });

  it("takes over from one that died in the middle of a takeover", async () => {
    const dead = JSON.stringify({ ...self(), startTicks: "1" });
    writeFileSync(lockPath(), dead);
    const { createHash } = await import("node:crypto");
    const right = `${lockPath()}.${createHash("sha256").update(dead).digest("hex").slice(0, 16)}`;
    writeFileSync(right, JSON.stringify({ ...self(), startTicks: "2" }));
    await using _lock = await acquireHomeLock(lockPath());
    expect(readdirSync(folder)).toEqual(["home.lock"]);
  });

  it("has one winner when several processes find a dead lock at once", async () => {
    writeFileSync(lockPath(), JSON.stringify({ ...self(), startTicks: "1" }));
    const module = new URL("./home-lock.ts", import.meta.url).href;
    const script = `
      const { acquireHomeLock } = await import(${JSON.stringify(module)});
      process.stdin.once("data", async () => {
        const answer = await acquireHomeLock(${JSON.stringify(lockPath())}).then(() => "won", (e) => e.reason);
        process.stdout.write(answer + "\\n");
      });
      process.stdin.once("end", () => process.exit(0));
      process.stdout.write("ready\\n");`;
    const children = Array.from({ length: 6 }, () =>
      spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["pipe", "pipe", "inherit"] }),
    );
    try {
      await Promise.all(children.map((child) => once(child.stdout, "data")));
      const answers = children.map(async (child) => String((await once(child.stdout, "data"))[0]).trim());
      for (const child of children) child.stdin.write("go\n");
      const outcome = (await Promise.all(answers)).sort();
      expect(outcome).toEqual([...Array.from({ length: 5 }, () => "HOME_IN_USE"), "won"]);
    } finally {
      for (const child of children) child.kill("SIGKILL");
    }
  }, 20_000);

  it("leaves a lock alone at disposal that is no longer its own", async () => {
    const lock = await acquireHomeLock(lockPath());
    writeFileSync(lockPath(), "somebody else");
    await lock[Symbol.asyncDispose]();
    expect(readFileSync(lockPath(), "utf8")).toBe("somebody else");
  });
});

describe("openHome", () => {
  it("makes a home once and keeps its id", () => {
    const home = path.join(folder, "a", "home");
    const first = openHome(home);
    expect(first.version).toBe(1);
    writeFileSync(path.join(home, "config.json"), "{}");
    expect(openHome(home)).toEqual(first);
    expect(statSync(home).mode & 0o777).toBe(0o700);
    expect(openHome(path.join(folder, "b")).id).not.toBe(first.id);
  });

  it.each(["empty", "a home"])("closes a folder to others that was there before and is %s", (kind) => {
    const home = path.join(folder, "open");
    mkdirSync(home);
    if (kind === "a home") openHome(home);
    chmodSync(home, 0o755);
    openHome(home);
    expect(statSync(home).mode & 0o7777).toBe(0o700);
  });

  it("does not adopt a folder that holds other things", () => {
    writeFileSync(path.join(folder, "thesis.txt"), "");
    chmodSync(folder, 0o755);
    expect(() => openHome(folder)).toThrow(expect.objectContaining({ reason: "CONFIG_INVALID" }));
    expect(statSync(folder).mode & 0o777).toBe(0o755);
    expect(readdirSync(folder)).toEqual(["thesis.txt"]);
  });

  it.each(['{"version":2,"id":"abcdefgh"}', "{}", "garbage", "null", '{"version":1,"id":"../x"}'])(
    "refuses a home.json of another version or form: %s",
    (content) => {
      writeFileSync(path.join(folder, "home.json"), content);
      expect(() => openHome(folder)).toThrow(expect.objectContaining({ reason: "HOME_VERSION_UNSUPPORTED" }));
      expect(readFileSync(path.join(folder, "home.json"), "utf8")).toBe(content);
    },
  );
});

describe("parentDeath", () => {
  it("resolves when the process gets another parent", async () => {
    const clock = createManualClock();
    let parentPid = 100;
    let dead = false;
    const watch = parentDeath({
      clock,
      intervalMs: 500,
      signal: new AbortController().signal,
      currentParentPid: () => parentPid,
    }).then(() => {
      dead = true;
    });
    await clock.advance(5000);
    expect(dead).toBe(false);
    parentPid = 1;
    await clock.advance(500);
    await watch;
    expect(dead).toBe(true);
  });

  it("resolves at once where the parent died before the first look", async () => {
    const options = { clock: createManualClock(), intervalMs: 500, signal: new AbortController().signal };
    await parentDeath({ ...options, parentPid: 100, currentParentPid: () => 1 });
  });

  it("resolves when the pipe from the parent ends", async () => {
    const stdin = new PassThrough();
    const clock = createManualClock();
    const watch = parentDeath({ clock, intervalMs: 500, signal: new AbortController().signal, stdin });
    stdin.end("some input that nobody wants");
    await watch;
    expect(clock.sleeping).toBe(0);
    expect(stdin.listenerCount("end")).toBe(0);
  });

  it("stops with the signal's reason", async () => {
    const controller = new AbortController();
    const reason = new Error("stopping");
    const watch = parentDeath({ clock: createManualClock(), intervalMs: 500, signal: controller.signal });
    controller.abort(reason);
    await expect(watch).rejects.toBe(reason);
  });
});
