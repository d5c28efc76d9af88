import path from "node:path";

/** Absolute path of the clone. */
export const root = path.resolve(import.meta.dirname, "../..");

/** Everything the bootstrap itself keeps; ignored by git, safe to delete. */
export const toolchainFolder = path.join(root, ".toolchain");

export const stampFolder = path.join(toolchainFolder, "stamps");

/** The TypeScript compiler that builds; it has no `.bin` entry of its own name. */
export const compiler = path.join(root, "node_modules/@typescript/native/bin/tsc");

/** The command line in one file, below the clone. It lies as deep as what it is made from. */
export const bundle = "packages/cli/bundle/turnbox.mjs";
