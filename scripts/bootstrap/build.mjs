import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { requireCommand } from "./command.mjs";
import { bundle, compiler, root, stampFolder } from "./layout.mjs";
import { createStamp, digest, listFiles } from "./stamp.mjs";

const packageFolders = () =>
  readdirSync(path.join(root, "packages"))
    .map((name) => `packages/${name}`)
    .filter((folder) => existsSync(path.join(root, folder, "package.json")));

const manifests = () => ["package.json", ...packageFolders().map((folder) => `${folder}/package.json`)];
const sources = () => packageFolders().flatMap((folder) => [`${folder}/src`, `${folder}/tsconfig.json`]);
const builds = () => packageFolders().map((folder) => `${folder}/dist`);

/** What the programs are made from. */
const BUNDLED = ["cli", "agents", "client", "orchestrator", "sandbox-host", "rpc", "core", "protocol"];
const BUNDLERS = ["bundle.mjs", "bundle-cli.mjs", "bundle-services.mjs"].map((name) => `scripts/bootstrap/${name}`);

/** The steps that turn a clone with a toolchain into one that runs: dependencies, generated code, compiled code. */
export function buildSteps(toolchain) {
  const run = (argv, timeoutMs) => requireCommand(argv, { cwd: root, env: toolchain.environment, timeoutMs });
  const stamp = (name, inputs, outputs) => createStamp({ folder: stampFolder, name, inputs, outputs });
  const of = (entries) => digest(entries, { base: root, facts: [toolchain.node()] });
  return [
    {
      name: "dependencies (pnpm install)",
      remedy:
        "check that npm reaches its registry (npm ping); if package.json was edited, run pnpm install and commit the lockfile",
      stamp: stamp(
        "dependencies",
        () => of(["pnpm-lock.yaml", "pnpm-workspace.yaml", ...manifests()]),
        () => String(existsSync(path.join(root, "node_modules/.modules.yaml")) && existsSync(compiler)),
      ),
      work: () => run([toolchain.node(), toolchain.pnpm, "install", "--frozen-lockfile"], 1_200_000),
    },
    {
      name: "generated code (buf generate)",
      remedy: "correct the .proto file that the last lines name, then run it again",
      stamp: stamp(
        "generated",
        () => of(["proto", "buf.yaml", "buf.gen.yaml", "pnpm-lock.yaml"]),
        () => of(["packages/protocol/src/gen"]),
      ),
      work: () => run(["buf", "generate"], 300_000),
    },
    {
      name: "compiled code (tsc -b)",
      remedy: "correct the errors that the last lines name",
      stamp: stamp(
        "compiled",
        () => of(["tsconfig.json", "tsconfig.base.json", "pnpm-lock.yaml", ...sources()]),
        () =>
          builds()
            .flatMap((folder) => listFiles(path.join(root, folder)))
            .join("\n"),
      ),
      // --force: an incremental build keeps the findings of old settings and does not miss outputs that were deleted.
      work: () => run([toolchain.node(), compiler, "-b", "--force"], 600_000),
    },
    {
      name: "command line in one file (esbuild)",
      remedy: "run pnpm install again: a package that the command line needs is missing",
      stamp: stamp(
        "bundled",
        () => of(["pnpm-lock.yaml", ...BUNDLERS, ...BUNDLED.map((name) => `packages/${name}/dist`)]),
        () => String(existsSync(path.join(root, bundle))),
      ),
      work: () => run([toolchain.node(), "scripts/bootstrap/bundle.mjs"], 120_000),
    },
  ];
}
