import { randomUUID } from "node:crypto";
import { chmodSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Canary, createCanary } from "../support/canary.ts";
import { type Json, Refusal, startHost, type TestHost } from "../support/host.ts";
import { createSession, script } from "../support/host-calls.ts";
import { run } from "../support/process.ts";
import { createRecorder, type Recorder } from "../support/recorder.ts";

describe("a host whose runtime does not work", () => {
  let directory: string;
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), "turnbox-path-"));
    const there = new Set(["runsc"]);
    for (const place of (process.env["PATH"] ?? "").split(":").filter((path) => path.startsWith("/"))) {
      for (const name of readable(place)) {
        if (!there.has(name)) symlinkSync(join(place, name), join(directory, name));
        there.add(name);
      }
    }
  });
  afterAll(() => {
    rmSync(directory, { recursive: true, force: true });
  });
  /** Starts a host with every program of this machine but runsc, and with this one in its place. */
  const start = async (runsc: string | null): Promise<TestHost> => {
    const path = join(directory, "runsc");
    rmSync(path, { force: true });
    if (runsc !== null) {
      writeFileSync(path, `#!/bin/bash\n${runsc}\n`);
      chmodSync(path, 0o755);
    }
    return await startHost({ env: { PATH: directory, TURNBOX_STORAGE_BACKEND: "local-disk" } });
  };

  it.each([
    ["missing", null, /runsc is not installed/],
    ["too old", "echo runsc version release-20200101.0", /older than/],
    ["not runsc", "echo hello", /does not say what version/],
    [
      "without its platform",
      '[ "$1" = --version ] && exec REAL "$@"; echo platform >&2; exit 128',
      /does not work here/,
    ],
  ])(
    "attack 27: is not served where runsc is %s",
    async (_, runsc, message) => {
      const real = (await run("/bin/sh", ["-c", "command -v runsc"])).stdout.trim();
      const failed = start(runsc?.replace("REAL", real) ?? null);
      await expect(failed).rejects.toThrow(/RUNTIME_UNAVAILABLE/);
      await expect(failed).rejects.toThrow(message);
    },
    90_000,
  );

  it("attack 27: is served with the real one, in the same way", async () => {
    const real = (await run("/bin/sh", ["-c", "command -v runsc"])).stdout.trim();
    await using host = await start(`exec ${real} "$@"`);
    await createSession(host, "a");
    expect(await script(host, "a", "dmesg | head -1")).toContain("gVisor");
  }, 90_000);
});

describe("the tools of the catalog, on a real host", () => {
  let host: TestHost;
  let recorder: Recorder;
  let canary: Canary;
  beforeAll(async () => {
    canary = createCanary();
    recorder = await createRecorder(["runsc", "git", "bash", "sh", "grep", "rg", "find", "ls", "cat", "env", "ssh"]);
    host = await startHost({ env: { PATH: recorder.path, HOME: canary.directory } });
    await createSession(host, "a");
    await script(host, "a", "echo here > a.txt");
  }, 120_000);
  afterAll(async () => {
    await host[Symbol.asyncDispose]();
    recorder[Symbol.dispose]();
    canary[Symbol.dispose]();
  }, 120_000);

  /** What each tool is asked: something of the session's, and the same of the machine's. */
  const paramsOf: Readonly<Record<string, (place: string) => Json>> = {
    read_file: (place) => ({ path: `${place}/a.txt` }),
    write_file: (place) => ({ path: `${place}/new`, content: "written" }),
    edit_file: (place) => ({ path: `${place}/a.txt`, old_string: "here", new_string: "there" }),
    list_dir: (place) => ({ path: place }),
    grep: (place) => ({ pattern: "CANARY|here", path: place }),
    glob: (place) => ({ pattern: "*", path: place }),
    bash: (place) => ({ cmd: `echo x > ${place}/by-bash; cat ${place}/secret` }),
    git_status: (place) => ({ cwd: place }),
    git_diff: (place) => ({ cwd: place }),
    git_log: (place) => ({ cwd: place }),
    git_show: (place) => ({ cwd: place }),
    git_add: (place) => ({ cwd: place, paths: ["."] }),
    git_commit: (place) => ({ cwd: place, message: "x" }),
    git_clone: (place) => ({ url: `file://${place}`, cwd: place }),
    git_fetch: (place) => ({ cwd: place }),
    git_pull: (place) => ({ cwd: place }),
    git_push: (place) => ({ cwd: place }),
  };
  const ask = async (toolName: string, params: Json): Promise<string> => {
    const call = { sessionId: "a", toolCallId: randomUUID(), toolName, params };
    return await host.call("ToolService/ExecuteTool", call).then(JSON.stringify, (thrown: unknown) => {
      if (thrown instanceof Refusal) return thrown.reason;
      throw thrown;
    });
  };

  it("attack 28: none writes or runs anything on the machine but in its own tree", async () => {
    const { tools } = (await host.call("ToolService/ListTools")) as unknown as {
      readonly tools: readonly { readonly name: string; readonly tier: number }[];
    };
    expect(tools.map(({ name }) => name).toSorted()).toEqual(Object.keys(paramsOf).toSorted());
    for (const { name, tier } of tools) {
      const before = recorder.started().length;
      for (const place of [canary.directory, `../../../..${canary.directory}`, `/proc/1/root${canary.directory}`])
        expect([name, (await ask(name, paramsOf[name]?.(place) ?? {})).includes(canary.secret)]).toEqual([name, false]);
      canary.expectUntouched();
      await ask(name, paramsOf[name]?.("/workspace") ?? {});
      // A tool that runs code runs it by runsc, and by nothing else. A tool of files runs no program at all: there is at
      // most the shell that the tool before it has left to be made, for the next call.
      const programs = recorder
        .started()
        .slice(before)
        .map(({ program }) => program);
      expect([name, programs.filter((program) => program !== "runsc")]).toEqual([name, []]);
      if (tier === 1) expect(programs.length).toBeLessThanOrEqual(1);
    }
    expect(await script(host, "a", "cat a.txt new")).toContain("there\nwritten");
  }, 90_000);
});

function readable(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
