import { spawnSync } from "node:child_process";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { createDirectorySandbox } from "../launch/directory-sandbox.suite.ts";
import { createLocalToolHost } from "./local-tool-host.ts";
import { describeToolHost } from "./tool-host.suite.ts";
import { createTurnboxToolHost } from "./turnbox-tool-host.ts";

describeToolHost("createLocalToolHost", createLocalToolHost);
describeToolHost("createTurnboxToolHost", (options) => createTurnboxToolHost(createDirectorySandbox(), options));

describe("createLocalToolHost", () => {
  it("neither waits for a pipe nor reads a directory as a file, and says what cannot be started", async () => {
    const root = await realpath(await mkdtemp(join(tmpdir(), "turnbox-tool-host-")));
    try {
      await using host = createLocalToolHost({ root });
      expect(spawnSync("mkfifo", [join(root, "pipe")]).status).toBe(0);
      for (const path of ["pipe", "."]) {
        await expect(host.readTextFile(path)).rejects.toMatchObject({ reason: "PATH_REFUSED" });
        await expect(host.writeTextFile(path, "x")).rejects.toMatchObject({ reason: "PATH_REFUSED" });
      }
      await expect(host.createTerminal({ command: "no-such-program" })).rejects.toMatchObject({
        reason: "COMMAND_MISSING",
      });
    } finally {
      await rm(root, { recursive: true });
    }
  });

  it("holds a bounded number of terminals", async () => {
    await using host = createLocalToolHost({ root: "/" });
    for (let count = 0; count < 64; count += 1) await host.createTerminal({ command: "true" });
    await expect(host.createTerminal({ command: "true" })).rejects.toMatchObject({ reason: "OVERLOADED" });
  });
});
