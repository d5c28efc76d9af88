import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { systemClock } from "@turnbox/core";
import { FifoSupply } from "../../../system/fifo/fifo-supply.ts";
import { createScriptedCommandRunner, type ScriptedAnswer } from "@turnbox/core/testing";
import { createLingeringOutputs } from "../../execution/lingering-outputs.ts";
import { containerLayout, createLayout } from "../container/layout.ts";
import { createDeaths } from "../container/death-causes.ts";
import { TreeKiller } from "./tree-killer.ts";

const ID = "abc";

describe("ending a tree", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "tree-killer-"));
    await mkdir(containerLayout(createLayout(directory), ID).execDirectory, { recursive: true });
  });
  afterEach(async () => {
    await rm(directory, { recursive: true });
  });

  const setup = (answers: readonly ScriptedAnswer[], live: "yes" | "no" = "yes") => {
    const rest = [...answers];
    const runner = createScriptedCommandRunner(() => rest.shift() ?? { kind: "exits", exitCode: 1 });
    const stopped: string[] = [];
    const context = {
      runner,
      helper: undefined,
      fifos: new FifoSupply(),
      execs: { way: "runsc" } as const,
      clock: systemClock,
      layout: createLayout(directory),
      prepareRoot: () => Promise.reject(new Error("nothing is booted here")),
      runscPath: "runsc",
      cgroupParent: "/turnbox",
      maxSpawned: 1,
      defaultLimits: {},
      lingering: createLingeringOutputs(1),
      ownExecs: new Set<string>(),
      deaths: createDeaths(),
      sandboxes: new Map<string, string>(),
      freezer: undefined,
    };
    const killer = new TreeKiller(context, {
      isLive: () => Promise.resolve(live === "yes"),
      thawed: async (_, work) => {
        await work();
      },
      stop: (id) => {
        stopped.push(id);
        return Promise.resolve();
      },
    });
    return { killer, runner, stopped };
  };

  it("is done when a sweep says that nothing is left", async () => {
    const { killer, runner, stopped } = setup([{ kind: "exits", exitCode: 0 }]);
    await killer.kill(ID, { marker: "m" });
    expect(runner.calls.length).toBe(1);
    expect(stopped).toEqual([]);
  });

  it("sweeps again when a sweep fails or is cut off", async () => {
    const { killer, runner, stopped } = setup([
      { kind: "exits", exitCode: 1 },
      { kind: "signaled", signal: "SIGKILL" },
      { kind: "exits", exitCode: 0 },
    ]);
    await killer.kill(ID, { marker: "m" });
    expect(runner.calls.length).toBe(3);
    expect(stopped).toEqual([]);
  });

  it("stops the container when no sweep succeeds", async () => {
    const { killer, runner, stopped } = setup([]);
    await killer.kill(ID, { marker: "m" });
    expect(runner.calls.length).toBe(3);
    expect(stopped).toEqual([ID]);
  });

  it("has nothing to do in a container that is gone", async () => {
    const { killer, runner, stopped } = setup([], "no");
    await killer.kill(ID, { marker: "m" });
    expect(runner.calls).toEqual([]);
    expect(stopped).toEqual([]);
  });

  it("leaves no process file behind", async () => {
    const { killer } = setup([{ kind: "exits", exitCode: 0, stdout: "7:1 8:2 " }]);
    expect(await killer.terminate(ID, { marker: "m", pid: 7 })).toBe("7:1 8:2 ");
    expect(await readdir(containerLayout(createLayout(directory), ID).execDirectory)).toEqual([]);
  });
});
