import { realpathSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { build } from "esbuild";

/** The programs of the services, and those that they start: threads and children of their own. */
const PROGRAMS = {
  "sandbox-host": [
    "main.js",
    "record/worker.js",
    "object-store/file/commit-worker.js",
    "file-worker/main.js",
    "turn/diff/diff-worker.js",
    "runtime/execution/terminal-helper.js",
  ],
  orchestrator: ["main.js", "store/sqlite/worker.js"],
};

/** Each program of the services in one file, at the same place below `bundle/` as what it is made from below `dist/`. */
export async function bundleServices({ root }) {
  for (const [name, programs] of Object.entries(PROGRAMS)) {
    const folder = path.join(root, "packages", name);
    await Promise.all(programs.map((program) => bundleProgram(folder, program)));
  }
}

async function bundleProgram(folder, program) {
  await build({
    entryPoints: [path.join(folder, "dist", program)],
    outfile: path.join(folder, "bundle", program),
    bundle: true,
    platform: "node",
    target: "node24",
    format: "esm",
    // A terminal needs the prebuilt code beside it; traces bring a whole kit that only few want.
    external: ["@lydell/node-pty", "@turnbox/rpc/trace"],
    plugins: [keepPlaces(folder, program)],
    // Packages of the older kind ask for node's own modules by `require`.
    banner: {
      js: 'import { createRequire as __createRequire } from "node:module";\nconst require = __createRequire(import.meta.url);',
    },
    logLevel: "warning",
  });
}

/** A module finds its neighbours by its own place: in one file with others it keeps the place it would have alone. */
function keepPlaces(folder, program) {
  const packages = realpathSync(path.dirname(folder));
  const at = path.dirname(path.join(packages, path.basename(folder), "dist", program));
  return {
    name: "keep-places",
    setup: ({ onLoad }) => {
      onLoad({ filter: /\/dist\/.*\.js$/ }, async ({ path: file }) => {
        if (!/^[a-z0-9-]+\/dist\//.test(path.relative(packages, file))) return undefined;
        const source = await readFile(file, "utf8");
        if (!source.includes("import.meta.url")) return undefined;
        const place = JSON.stringify(path.relative(at, file));
        return { contents: source.replaceAll("import.meta.url", `new URL(${place}, import.meta.url).href`) };
      });
    },
  };
}
