import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { acquireHomeLock } from "./home-lock.ts";
import { identifyProcess } from "./process-identity.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "home-lock-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const self = () => identifyProcess(process.pid) ?? { pid: 0, startTicks: "", bootId: "" };

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
    writeFileSync(lockPath(), "another process");
    await lock[Symbol.asyncDispose]();
    expect(readFileSync(lockPath(), "utf8")).toBe("another process");
  });
});
