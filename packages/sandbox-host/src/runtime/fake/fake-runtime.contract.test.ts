import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { randomToken } from "@turnbox/core";
import { runtimeSuite } from "../runtime.suite.ts";
import { createFakeMachine, createFakeRuntime } from "./fake-runtime.ts";

runtimeSuite(
  "fake",
  async () => {
    const directory = await mkdtemp(join(tmpdir(), "turnbox-fake-runtime-"));
    const machine = createFakeMachine();
    const runtime = createFakeRuntime({ machine });
    return {
      runtime,
      programs: {
        prints: ({ stdout, stderr, exitCode }) => ["print", stdout, stderr, String(exitCode)],
        copiesInput: () => ["cat"],
        printsEnvironment: () => ["env"],
        printsDirectory: () => ["pwd"],
        printsFile: (path) => ["cat", path],
        writesFile: (path, text) => ["write", path, text],
        floods: (bytes) => ["flood", String(bytes)],
        waits: () => ["sleep"],
        counts: (path) => ["count", path],
      },
      reopen: () => createFakeRuntime({ machine }),
      newContainer: async (limits = {}) => {
        const id = randomToken(16);
        const rootPath = join(directory, id);
        await mkdir(join(rootPath, "workspace"), { recursive: true });
        return { id, rootPath, hostname: "fake", limits };
      },
      crash: (id) => {
        runtime.crash(id, "lost");
        return Promise.resolve();
      },
      leftovers: (ids) => Promise.resolve(ids.filter((id) => machine.has(id))),
      [Symbol.asyncDispose]: async () => {
        await rm(directory, { recursive: true, force: true });
      },
    };
  },
  { shell: "no", addedVariables: [], crashes: "yes" },
);
