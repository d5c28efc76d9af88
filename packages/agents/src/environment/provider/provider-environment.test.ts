import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { createLocalProvider } from "../../provider/local/local-provider.ts";
import { resolveProfile } from "../../provider/profile/resolve-profile.ts";
import { createRegistry } from "../../provider/registry.ts";
import { createFileSessionStateStore } from "../../provider/state/file-session-state-store.ts";
import { environmentSuite, reasonOf, toolRequest } from "../environment.suite.ts";
import { createProviderEnvironment } from "./provider-environment.ts";

let sessions = 0;
const config = () => {
  sessions += 1;
  return { sessionId: `provided-${String(sessions)}` };
};

const open = async () => {
  const parent = await realpath(await mkdtemp(join(tmpdir(), "turnbox-test-")));
  const localRootDir = join(parent, "workspace");
  await mkdir(localRootDir);
  const store = createFileSessionStateStore(join(parent, "state"));
  const profile = resolveProfile({ backend: "local", env: { FROM_PROFILE: "yes" } });
  const options = { registry: createRegistry(createLocalProvider()), store, localRootDir, profile };
  return {
    localRootDir,
    environment: () => createProviderEnvironment(options),
    config,
    failingConfig: () => ({ ...config(), baseImage: "debian" }),
    sessionCount: async () => (await store.list()).filter(({ state }) => state.state === "prepared").length,
    [Symbol.asyncDispose]: () => rm(parent, { recursive: true }),
  };
};

environmentSuite("over a provider", open);

describe("an environment over a provider", () => {
  it("works on the workspace, with the profile's variables, and inside of its root", async () => {
    await using harness = await open();
    const { environment: make, localRootDir } = harness;
    const environment = make();
    await environment.create(config());
    const run = (tool: string, params: Readonly<Record<string, unknown>>) =>
      environment.executeTool(toolRequest(tool, params));
    await writeFile(join(localRootDir, "given.txt"), "given\n");
    expect((await run("bash", { cmd: "cat given.txt; echo $FROM_PROFILE" })).content).toBe("given\nyes\n");
    await run("write_file", { path: "deep/made.txt", content: "made\n" });
    expect(await readFile(join(localRootDir, "deep/made.txt"), "utf8")).toBe("made\n");
    expect((await run("list_dir", { depth: 2 })).content.split("\n")).toEqual(["deep/", "deep/made.txt", "given.txt"]);
    expect((await run("glob", { pattern: "**/*.txt" })).content.split("\n")).toEqual(["deep/made.txt", "given.txt"]);
    expect((await run("read_file", { path: "missing" })).isError).toBe(true);
    for (const [tool, params] of [
      ["read_file", { path: "/etc/passwd" }],
      ["write_file", { path: "../out", content: "" }],
      ["list_dir", { path: ".." }],
      ["grep", { path: "..", pattern: "x" }],
      ["bash", { cmd: "pwd", cwd: "/" }],
    ] as const)
      expect([tool, await reasonOf(run(tool, params))]).toEqual([tool, "PATH_REFUSED"]);
    expect(environment.capabilities()).toMatchObject({ isolation: "none", pause: false });
    await environment.destroy();
  });
});
