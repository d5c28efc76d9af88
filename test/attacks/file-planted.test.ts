import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { archiveOf } from "../support/archive-of.ts";
import { uploadOf } from "../support/file-client.ts";
import { doneOf, type FileRoom, openFileRoom } from "../support/file-room.ts";
import { completeTurn, destroy, fork, rollBack } from "../support/host-calls.ts";
import { libraryThatMakes } from "../support/hostile-programs.ts";
import { poll } from "../support/process.ts";
import { type Loaded, loadedBelow } from "../support/process-tree.ts";

let room: FileRoom;
/** On the machine: what is planted makes a file here when the machine runs or loads it. */
let traps: string;
beforeAll(async () => {
  room = await openFileRoom();
  traps = mkdtempSync(join(tmpdir(), "turnbox-traps-"));
}, 120_000);
afterAll(async () => {
  rmSync(traps, { recursive: true, force: true });
  await room[Symbol.asyncDispose]();
}, 120_000);

const LIBRARIES = [
  "/workspace/preload.so",
  "/lib/preload.so",
  "/workspace/libnss_files.so.2",
  "/lib/x86_64-linux-gnu/libnss_files.so.2",
  "/lib/x86_64-linux-gnu/libnss_dns.so.2",
  "/lib/libnss_compat.so.2",
  "/usr/lib/x86_64-linux-gnu/libnss_myhostname.so.2",
  "/etc/ld-nix.so.preload",
];
/** Programs under names that the host itself runs, in places that a careless one would look at first. */
const PROGRAMS = ["git", "tar", "zfs", "zpool", "runsc", "node", "diff", "sync"];
const HOOKS = ["pre-commit", "post-commit", "post-checkout", "pre-push", "post-index-change", "fsmonitor-watchman"];

/** Plants everything, as the agent; libraries come by upload, for a shell cannot write them. */
async function plant(): Promise<void> {
  const { agent, files, sessionId } = room;
  const library = libraryThatMakes(join(traps, "by-library"));
  await agent("mkdir -p /lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu .git/hooks .claude bin node_modules/tar");
  for (const path of LIBRARIES) await files.writeFile(uploadOf({ sessionId, path, mode: 0o755 }, library));
  // Inside there are no traps, and the file tells that it ran.
  const trap = (name: string): string =>
    `#!/bin/sh\\ntouch ${traps}/by-${name} 2>/dev/null || echo ran >> /workspace/ran-${name}\\n`;
  for (const name of HOOKS) await agent(`printf '${trap("hook")}' > .git/hooks/${name}; chmod 755 .git/hooks/${name}`);
  for (const name of PROGRAMS)
    await agent(`printf '${trap(name)}' > bin/${name}; cp bin/${name} ${name}; chmod 755 bin/${name} ${name}`);
  await agent(`
    cp bin/git /bin/git
    printf '[core]\\n\\tfsmonitor = /workspace/git\\n\\thooksPath = /workspace/.git/hooks\\n\\tpager = /workspace/git\\n' > .git/config
    printf '{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"touch ${traps}/by-settings"}]}]}}' > .claude/settings.json
    printf 'require("fs").writeFileSync("${traps}/by-node", "")' > node_modules/tar/index.js
    printf 'NODE_OPTIONS=--require=/workspace/node_modules/tar/index.js\\nLD_PRELOAD=/workspace/preload.so\\n' > .env
    cp .env .npmrc; printf 'touch ${traps}/by-profile' | tee .bashrc .profile /root/.bashrc > /root/.profile
    echo hosts: files dns myhostname > /etc/nsswitch.conf`);
}

/** Everything that the host does with a session's files. */
async function useAll(): Promise<void> {
  const { host, sessionId, files, victims, agent, expectHarmless } = room;
  const { snapshotId } = await completeTurn(host, sessionId);
  for (const path of [".", ".git", ".git/hooks", "/lib", "bin"])
    expect(doneOf(await expectHarmless(victims.directoryReads, path))).toContain("DownloadArchive");
  for (const path of [".git/config", ".claude/settings.json", "preload.so", "git"])
    await expectHarmless(victims.fileReads, path);
  for (const path of [".git/hooks/pre-commit", "bin/git"]) {
    const { Remove, ...writes } = victims.fileWrites;
    await agent(`cp ${path} kept`);
    await expectHarmless(writes, path);
    await agent(`cp kept ${path}`);
    expect((await Remove?.("kept"))?.isDone).toBe(true);
  }
  await files.uploadArchive(uploadOf({ sessionId, path: ".git/hooks" }, archiveOf({ path: "update", text: "x" })));
  const params: Readonly<Record<string, Record<string, unknown>>> = {
    git_status: {},
    git_diff: {},
    git_log: {},
    git_add: { paths: ["."] },
    git_commit: { message: "x" },
  };
  for (const [toolName, given] of Object.entries(params))
    await host.call("ToolService/ExecuteTool", { sessionId, toolCallId: toolName, toolName, params: given });
  const diff = await host.call("SnapshotService/DiffSnapshots", { sessionId, fromSnapshotId: snapshotId, text: true });
  expect(JSON.stringify(diff)).toContain("ran-git");
  await host.call("SessionService/PauseSession", { sessionId });
  await expectHarmless(victims.directoryReads, ".");
  await host.call("SessionService/ResumeSession", { sessionId });
  const { children } = await fork(host, sessionId, { count: 1 });
  for (const child of children) await destroy(host, child.sessionId);
}

describe("programs and libraries that an agent plants, on a real host", () => {
  it("attack 16: are run and loaded by nothing on the machine, whatever it does with the files", async () => {
    const { host, sessionId, agent, canary } = room;
    await plant();
    const seen: Loaded[] = [];
    const watching = setInterval(() => seen.push(...loadedBelow(host.pid, host.dataDirectory)), 100);
    try {
      await useAll();
      seen.push(...loadedBelow(host.pid, host.dataDirectory));
    } finally {
      clearInterval(watching);
    }
    // Git runs, in the sandbox and only there.
    expect(await agent("sort -u ran-git")).toBe("ran\n");
    expect(readdirSync(traps)).toEqual([]);
    expect(seen.filter(({ path }) => path.includes("/mnt/"))).toEqual([]);
    canary.expectUntouched();
    const { snapshotId } = await completeTurn(host, sessionId);
    await rollBack(host, sessionId, snapshotId);
    expect(readdirSync(traps)).toEqual([]);
  }, 180_000);

  it("attack 16: would be seen, if they were: a program that loads one, and one that runs one", async () => {
    const library = join(traps, "control.so");
    writeFileSync(library, libraryThatMakes(join(traps, "control")));
    execFileSync("/bin/true", { env: { LD_PRELOAD: library } });
    expect(readdirSync(traps)).toEqual(["control", "control.so"]);
    const asleep: ChildProcess = spawn("sleep", ["60"], { env: { LD_PRELOAD: library }, stdio: "ignore" });
    try {
      const found = await poll("the library to be seen", () => {
        const loaded = loadedBelow(process.pid, traps);
        return loaded.length > 0 ? loaded : undefined;
      });
      expect(found.map(({ path }) => path)).toContain(library);
    } finally {
      asleep.kill("SIGKILL");
    }
    // The head that the rollback left behind goes in the background.
    const root = await poll("one head to be left", () => {
      try {
        return room.root();
      } catch {
        return undefined;
      }
    });
    execFileSync("sh", [join(root, "workspace/.git/hooks/post-commit")], { stdio: "ignore" });
    expect(readdirSync(traps)).toContain("by-hook");
  }, 60_000);
});
