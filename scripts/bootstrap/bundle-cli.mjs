import { mkdirSync, readdirSync, rmSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";
import { root } from "./layout.mjs";

/** Packages of the older kind ask for node's own modules by `require`. */
const REQUIRE =
  'import { createRequire as __createRequire } from "node:module";\nconst require = __createRequire(import.meta.url);';

/**
 * Bundles the command line as `turnbox.mjs` into a folder of its own, with what it needs besides `external`. What it
 * imports at run time only is a chunk beside it. Answers with esbuild's account of what went where.
 */
export async function bundleCli({ folder, external }) {
  mkdirSync(folder, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { turnbox: "packages/cli/dist/main.js" },
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    chunkNames: "[name]-[hash]",
    bundle: true,
    splitting: true,
    platform: "node",
    target: "node22",
    format: "esm",
    external,
    banner: { js: REQUIRE },
    metafile: true,
    logLevel: "warning",
  });
  // Last, so that a command line that is running finds its chunks while the new ones are being made.
  const made = new Set(Object.keys(metafile.outputs).map((file) => path.basename(file)));
  for (const name of readdirSync(folder)) if (!made.has(name)) rmSync(path.join(folder, name));
  return metafile;
}
