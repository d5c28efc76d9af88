import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { archiveOf } from "../support/archive-of.ts";
import { bytesOf, uploadOf } from "../support/file-client.ts";
import { doneOf, type FileRoom, openFileRoom } from "../support/file-room.ts";
import { WRITTEN } from "../support/file-victims.ts";
import { processesWith } from "../support/process.ts";
import { SLACK } from "../support/random.ts";

const AT_ONCE = 64;
const ANSWER_MS = 100 * SLACK;
const MIB = 1024 ** 2;

let room: FileRoom;
beforeAll(async () => {
  room = await openFileRoom();
  await room.agent("mkdir special; echo text > legal");
}, 120_000);
afterAll(async () => {
  await room[Symbol.asyncDispose]();
}, 120_000);

/** On the machine: what no agent can make in gVisor may have come with a template. */
const special = (name: string): string => join(room.root(), "workspace/special", name);

async function timed<Answer>(work: Promise<Answer>): Promise<{ readonly answer: Answer; readonly ms: number }> {
  const startedMs = performance.now();
  return { answer: await work, ms: performance.now() - startedMs };
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1] ?? 0;

describe("what is no regular file, on a real host", () => {
  it(`attack 7: ${AT_ONCE} FIFOs at once hold up no other call, read and written`, async () => {
    const { agent, victims, files, sessionId } = room;
    await agent(`cd special; for n in $(seq ${AT_ONCE}); do mkfifo agent-$n; done`);
    execFileSync(
      "mkfifo",
      Array.from({ length: AT_ONCE }, (_, n) => special(`fifo-${n}`)),
    );
    const read = victims.fileReads["ReadFile"] ?? missing;
    const write = victims.fileWrites["WriteFile"] ?? missing;
    // The workers are warm after these.
    for (const victim of [read, write]) expect((await victim("special/fifo-0")).isDone).toBe(false);
    const alone = await timed(read("special/fifo-1"));
    expect(alone.answer).toMatchObject({ isDone: false, text: expect.stringContaining("PATH_REFUSED") });
    expect(alone.ms).toBeLessThan(ANSWER_MS);

    const all = Array.from({ length: AT_ONCE }, (_, n) => [read(`special/fifo-${n}`), write(`special/fifo-${n}`)]);
    const statsMs: number[] = [];
    for (let n = 0; n < 9; n += 1) statsMs.push((await timed(files.stat({ sessionId, path: "legal" }))).ms);
    expect(median(statsMs)).toBeLessThan(ANSWER_MS);
    for (const { isDone, text } of await Promise.all(all.flat()))
      expect([isDone, text]).toEqual([false, expect.stringMatching(/^(PATH_REFUSED|OVERLOADED)/)]);
    // FIFOs of the agent are in its sandbox, and not among its files.
    expect((await read("special/agent-1")).text).toContain("FILE_NOT_FOUND");
    expect(doneOf(await room.expectHarmless(toolReads(), "special/fifo-2"))).toEqual([]);
    expect(doneOf(await room.expectHarmless(toolReads(), "legal"))).toEqual(["read_file", "grep"]);
  }, 120_000);

  it("attack 8: devices, sockets and directories are no files to read or write", async () => {
    const { agent, victims, expectHarmless } = room;
    await agent("mkdir special/directory; mknod special/own c 1 5 2>/dev/null && exit 1 || true");
    for (const [name, minor] of [
      ["null", "3"],
      ["zero", "5"],
      ["full", "7"],
    ] as const) {
      execFileSync("mknod", [special(name), "c", "1", minor]);
    }
    execFileSync("mknod", [special("disk"), "b", "7", "0"]);
    const socket = createServer();
    await new Promise<void>((resolve, reject) => {
      socket.once("error", reject).listen(special("socket"), resolve);
    });
    try {
      const reads = { ReadFile: victims.fileReads["ReadFile"] ?? missing, ...toolReads() };
      const writes = {
        edit_file: victims.fileWrites["edit_file"] ?? missing,
        write_file: victims.fileWrites["write_file"] ?? missing,
        WriteFile: victims.fileWrites["WriteFile"] ?? missing,
      };
      for (const name of ["null", "zero", "full", "disk", "socket", "directory"]) {
        const harmless = name === "directory" ? { ReadFile: reads.ReadFile } : reads;
        expect([name, doneOf(await expectHarmless(harmless, `special/${name}`))]).toEqual([name, []]);
        expect([name, doneOf(await expectHarmless(writes, `special/${name}`))]).toEqual([name, []]);
      }
      expect(doneOf(await expectHarmless(victims.directoryReads, "special"))).toEqual(
        Object.keys(victims.directoryReads),
      );
      await agent("echo text > legal");
      const all = { ...reads, ...writes };
      expect(doneOf(await expectHarmless(all, "legal"))).toEqual(Object.keys(all));
    } finally {
      socket.close();
    }
  }, 60_000);

  it("attack 9: a sparse file of 8 TiB costs neither memory nor time, and is not packed", async () => {
    const { agent, files, sessionId, victims, expectHarmless, host } = room;
    await agent("mkdir sparse; truncate -s 8796093022208 sparse/huge");
    const before = rssOf(host.pid);
    expect(await bytesOf(files.readFile({ sessionId, path: "sparse/huge", limitBytes: 1000n }))).toHaveLength(1000);
    let seen = 0;
    for await (const { data } of files.readFile({ sessionId, path: "sparse/huge" })) {
      seen += data.length;
      if (seen > 4 * MIB) break;
    }
    expect(seen).toBeGreaterThan(4 * MIB);
    const outcomes = await expectHarmless(
      { ...toolReads(), edit_file: victims.fileWrites["edit_file"] ?? missing, Pack: pack() },
      "sparse/huge",
    );
    expect(doneOf(outcomes)).not.toContain("edit_file");
    expect(outcomes["Pack"]).toMatchObject({ isDone: false, text: expect.stringContaining("INVALID_ARGUMENT") });
    for (const { text } of Object.values(outcomes)) expect(text.length).toBeLessThan(MIB);
    expect(rssOf(host.pid) - before).toBeLessThan(512 * MIB);
    await agent("rm -r sparse");
    expect(doneOf(await expectHarmless({ Pack: pack() }, "legal"))).toEqual(["Pack"]);
  }, 120_000);

  it("attack 10: a file that grows and shrinks under its readers gives whole streams of honest length", async () => {
    const { agent, files, sessionId } = room;
    await agent("mkdir -p moving; head -c 700000 /dev/zero > moving/file");
    const writer = await agent(
      "while :; do head -c 900000 /dev/zero > moving/file; : > moving/file; done > /dev/null 2>&1 & echo $!",
    );
    for (let round = 0; round < 20; round += 1) {
      let claimed = -1;
      let received = 0;
      for await (const { entry, data } of files.readFile({ sessionId, path: "moving/file" })) {
        if (entry !== undefined) claimed = Number(entry.sizeBytes);
        received += data.length;
      }
      expect(claimed).toBeGreaterThanOrEqual(0);
      expect(received).toBeLessThanOrEqual(claimed);
      const archive = await bytesOf(files.downloadArchive({ sessionId, path: "moving" }));
      expect(execFileSync("tar", ["-tf", "-"], { input: archive, encoding: "utf8" })).toMatch(/^(file\n)?$/);
    }
    await agent(`kill ${writer}`);
    await agent("head -c 1234567 /dev/zero > moving/file");
    expect(await bytesOf(files.readFile({ sessionId, path: "moving/file" }))).toHaveLength(1_234_567);
  }, 120_000);

  it("attack 11: hard links and set-user bits of the agent gain nothing from the host's writes", async () => {
    const { agent, files, sessionId, canary, victims } = room;
    expect(() =>
      execFileSync("ln", [join(canary.directory, "secret"), special("hard")], { stdio: "ignore" }),
    ).toThrow();
    await agent("echo own > origin; ln origin hard; echo '#!/bin/sh' > suid; chmod 6755 suid; chown 1234:1234 suid");
    await victims.fileWrites["WriteFile"]?.("hard");
    await victims.fileWrites["WriteFile"]?.("suid");
    expect(await agent("cat origin hard; stat -c '%a %u:%g' suid")).toBe(`own\n${WRITTEN}755 1234:1234\n`);
    await files.uploadArchive(
      uploadOf({ sessionId, path: "unpacked" }, archiveOf({ path: "tool", text: "x", mode: 0o6755 })),
    );
    expect(await agent("stat -c '%a %u:%g' unpacked/tool")).toBe("755 0:0\n");
    await agent("chmod 6755 unpacked/tool");
    const archive = await bytesOf(files.downloadArchive({ sessionId, path: "unpacked" }));
    expect(execFileSync("tar", ["-tvf", "-"], { input: archive, encoding: "utf8" })).toMatch(/^-rwxr-xr-x /);
    canary.expectUntouched();
  }, 60_000);
});

const missing = (): never => {
  throw new Error("there is no such victim");
};
const toolReads = () => ({
  read_file: room.victims.fileReads["read_file"] ?? missing,
  grep: room.victims.fileReads["grep"] ?? missing,
});
const pack = () => room.victims.fileReads["DownloadArchive"] ?? missing;

/** Memory of the host and its file workers. */
function rssOf(pid: number): number {
  const workers = processesWith("file-worker")
    .map((line) => Number(line.split(" ")[0]))
    .filter((worker) => statusOf(worker).includes(`PPid:\t${pid}\n`));
  return [pid, ...workers]
    .map((one) => Number(/^VmRSS:\s+(\d+) kB$/m.exec(statusOf(one))?.[1] ?? 0) * 1024)
    .reduce((sum, bytes) => sum + bytes, 0);
}

function statusOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8");
  } catch {
    return "";
  }
}
