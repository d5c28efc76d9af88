import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Finished, poll, REPO, run } from "../support/process.ts";
import { environment, startServer, type TestServer } from "../support/server.ts";

const COMPILER = join(REPO, "node_modules/@typescript/native/bin/tsc");
const TSCONFIG = {
  compilerOptions: {
    target: "ES2022",
    lib: ["ES2023", "ESNext.Disposable"],
    module: "NodeNext",
    types: ["node"],
    typeRoots: [join(REPO, "node_modules/@types")],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
    noEmit: true,
  },
  files: ["ten-lines.ts", "conformance.ts"],
};

const CONFORMANCE = `
import { createLocalProvider } from "@turnbox/agents";
import { assertConforming, checkProvider } from "@turnbox/agents/testing";

const findings = await checkProvider(() => createLocalProvider(), { backend: "local" });
assertConforming(findings);
console.log(findings.filter(({ outcome }) => outcome === "passed").length > 0);
`;

/** The first example of the README that is TypeScript. */
async function tenLines(): Promise<string> {
  const example = /^```ts\n([^]*?)^```$/m.exec(await readFile(join(REPO, "README.md"), "utf8"))?.[1];
  if (example === undefined) throw new Error("README.md has no example in TypeScript");
  return example;
}

async function succeed(name: string, finished: Promise<Finished>): Promise<string> {
  const { exitCode, stdout, stderr } = await finished;
  if (exitCode !== 0) throw new Error(`${name}: exit ${exitCode}: ${stdout}${stderr}`);
  return stdout;
}

/** Packs what is published and installs it in a project of its own, as somebody does who has never seen this clone. */
async function installInto(project: string): Promise<void> {
  const env = environment(project);
  const packed = run(process.execPath, [join(REPO, "scripts/pack/main.mjs"), project], { env });
  const [, ...tarballs] = (await succeed("pack", packed)).trim().split("\n");
  const manifest = { name: "scratch", private: true, type: "module" };
  await writeFile(join(project, "package.json"), JSON.stringify(manifest));
  await writeFile(join(project, "tsconfig.json"), JSON.stringify(TSCONFIG));
  await writeFile(join(project, "ten-lines.ts"), await tenLines());
  await writeFile(join(project, "conformance.ts"), CONFORMANCE);
  const quiet = ["--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"];
  await succeed("install", run("npm", ["install", ...quiet, ...tarballs], { cwd: project, env }));
}

let project: string;
let server: TestServer;
let env: NodeJS.ProcessEnv;
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "turnbox-scratch-"));
  [server] = await Promise.all([startServer(), installInto(project)]);
  env = environment(server.home, { TURNBOX_PORT: new URL(server.url).port });
}, 180_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await rm(project, { recursive: true, force: true });
}, 120_000);

const turnbox = (args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Finished> =>
  run(join(project, "node_modules/.bin/turnbox"), args, { cwd: project, env: { ...env, ...more } });

describe("the client, the agents and the command line, installed from their tarballs in a project outside the clone", () => {
  it("needs none of our other packages, and none of what only they use", async () => {
    const modules = join(project, "node_modules");
    expect(await readdir(join(modules, "@turnbox"))).toEqual(["agents", "client"]);
    const installed = await readdir(modules);
    for (const name of ["pino", "prom-client", "commander", "@opentelemetry", "@modelcontextprotocol"])
      expect(installed).not.toContain(name);
  });

  it("has types that hold in a strict project, also without those of browsers", async () => {
    const { stdout } = await run(process.execPath, [COMPILER, "-p", project], { cwd: project, env });
    // The runtime of Connect names a type of browsers; everybody else's declarations are theirs.
    const ours = stdout.split("\n").filter((line) => line !== "" && !/^(node_modules\/(?!@turnbox\/)|\s)/.test(line));
    expect(ours).toEqual([]);
  }, 60_000);

  it("runs the ten lines of the README, which print what the README says and leave no sandbox", async () => {
    const promised = [...(await tenLines()).matchAll(/^console\.log\(.*\); \/\/ (.+)$/gm)].map(([, text = ""]) => text);
    const ran = await run(process.execPath, ["ten-lines.ts"], { cwd: project, env });
    expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
    expect(ran.stdout.split("\n").filter((line) => line !== "")).toEqual(promised);
    expect(promised).not.toEqual([]);
    await poll("no sandbox is left", async () => {
      const list = JSON.parse(await succeed("ls", turnbox(["ls", "--json"]))) as {
        readonly sandboxes: readonly unknown[];
      };
      return list.sandboxes.length === 0 ? true : undefined;
    });
  }, 60_000);

  it("brings the checks for other people's providers, which need no test framework", async () => {
    const checked = await run(process.execPath, ["conformance.ts"], { cwd: project, env });
    expect(checked).toEqual({ exitCode: 0, stdout: "true\n", stderr: "" });
  }, 60_000);

  it("brings the command line, which says what traces need", async () => {
    const { version } = JSON.parse(await readFile(join(REPO, "packages/cli/package.json"), "utf8")) as {
      readonly version: string;
    };
    const plain = await turnbox(["--version"]);
    expect(plain).toEqual({ exitCode: 0, stdout: `${version}\n`, stderr: "" });
    const traced = await turnbox(["--version"], { OTEL_TRACES_EXPORTER: "otlp" });
    expect(traced).toMatchObject({ exitCode: 0, stdout: `${version}\n` });
    expect(traced.stderr).toContain("npm install @opentelemetry/api @opentelemetry/sdk-node");
  });
});
