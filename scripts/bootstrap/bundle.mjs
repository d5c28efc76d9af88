import path from "node:path";
import { build } from "esbuild";
import { bundle, root } from "./layout.mjs";

// Traces bring a whole kit with them that only few want: it stays where it is and is loaded where asked for.
await build({
  entryPoints: [path.join(root, "packages/client/dist/cli/main.js")],
  outfile: path.join(root, bundle),
  bundle: true,
  platform: "node",
  target: "node22",
  format: "esm",
  external: ["@turnbox/core/trace"],
  // Packages of the older kind ask for node's own modules by `require`.
  banner: {
    js: 'import { createRequire as __createRequire } from "node:module";\nconst require = __createRequire(import.meta.url);',
  },
  logLevel: "warning",
});
