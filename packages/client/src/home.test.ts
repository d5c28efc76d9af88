import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { identifyProcess } from "@turnbox/core";
import { readLockHolder, readServerRecord } from "./home.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-service-"));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const write = async (path: string, text: string): Promise<void> => {
  await mkdir(dirname(join(directory, path)), { recursive: true });
  await writeFile(join(directory, path), text);
};

describe("readLockHolder", () => {
  it("finds the living process that holds a lock, and none once it has ended or where the pid is another's", async () => {
    const path = join(directory, "orchestrator.lock");
    expect(readLockHolder(path)).toBeUndefined();
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    const identity = identifyProcess(child.pid ?? 0);
    try {
      await write("orchestrator.lock", JSON.stringify({ ...identity, nonce: "x" }));
      expect(readLockHolder(path)).toEqual(identity);
      for (const other of [{ startTicks: "1" }, { bootId: "before" }]) {
        await write("orchestrator.lock", JSON.stringify({ ...identity, ...other }));
        expect(readLockHolder(path)).toBeUndefined();
      }
      await write("orchestrator.lock", "");
      expect(readLockHolder(path)).toBeUndefined();
      await write("orchestrator.lock", JSON.stringify(identity));
    } finally {
      child.kill("SIGKILL");
    }
    await once(child, "exit");
    expect(readLockHolder(path)).toBeUndefined();
  });
});

describe("readServerRecord", () => {
  it("answers at every moment while servers write and remove their records", async () => {
    const record = JSON.stringify({ url: "http://127.0.0.1:1", pid: 4242, version: "1" });
    const script = `
      const { renameSync, rmSync, writeFileSync } = require("node:fs");
      const [file, text] = process.argv.slice(1);
      console.log("up");
      for (;;) { writeFileSync(file + ".draft", text); renameSync(file + ".draft", file); rmSync(file); }`;
    const args = ["-e", script, join(directory, "server.json"), record];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await once(child.stdout, "data");
      const seen = new Set<number | undefined>();
      for (const giveUpAt = Date.now() + 5000; seen.size < 2 && Date.now() < giveUpAt; )
        for (let look = 0; look < 1000; look += 1) seen.add(readServerRecord(directory)?.pid);
      expect(seen).toEqual(new Set([undefined, 4242]));
    } finally {
      child.kill("SIGKILL");
    }
  });
});
