import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";
import { rollup } from "rollup";
import { dts } from "rollup-plugin-dts";
import ts from "typescript";
import { root } from "../bootstrap/layout.mjs";
import { isOurs, packageOf } from "./package-of.mjs";

/** What came with a later Node than the oldest one that the package is for, where only running it would tell. */
const TOO_NEW =
  /\b(?:Async)?DisposableStack\b|\bPromise\.try\(|\bRegExp\.escape\(|\bError\.isError\(|\bimport\.meta\.main\b|\.(?:to|from|setFrom)Base64\(/;

function refuseTooNew(folder) {
  for (const name of readdirSync(folder)) {
    const found = TOO_NEW.exec(readFileSync(path.join(folder, name), "utf8"));
    if (found !== null) throw new Error(`the library uses ${found[0]}, which Node 22 does not have (${name})`);
  }
}

const packagesIn = (specifiers) => specifiers.map(packageOf).filter((name) => name !== undefined);

/**
 * Bundles the library with what it takes from our other packages, and nothing of anybody else: `external` stays outside,
 * and any further package is refused. Answers with the packages that it imports.
 */
export async function bundleLibrary({ name, entries, folder, external }) {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: entries,
    outdir: folder,
    chunkNames: "shared-[hash]",
    bundle: true,
    splitting: true,
    platform: "node",
    target: "node22",
    format: "esm",
    external,
    // Errors are shown by the name of their class.
    keepNames: true,
    metafile: true,
    logLevel: "warning",
  });
  const outputs = Object.values(metafile.outputs);
  const foreign = outputs
    .flatMap(({ inputs }) => Object.entries(inputs))
    .filter(([file, { bytesInOutput }]) => bytesInOutput > 0 && file.includes("node_modules/"))
    .map(([file]) => file);
  if (foreign.length > 0) {
    const first = foreign.slice(0, 5).join("\n  ");
    throw new Error(`${name} holds code of packages that its package.json does not name:\n  ${first}`);
  }
  refuseTooNew(folder);
  return packagesIn(outputs.flatMap(({ imports }) => imports.filter((one) => one.external).map((one) => one.path)));
}

/**
 * Rolls the declarations of the same entry points up, with those of our other packages but for those that stay `outside`.
 * Answers like `bundleLibrary`.
 */
export async function rollDeclarations({ entries, folder, outside }) {
  const isBundled = (id) => isOurs(id) && !outside.includes(packageOf(id));
  const input = Object.fromEntries(
    Object.entries(entries).map(([name, file]) => [name, path.join(root, file.replace(/\.js$/, ".d.ts"))]),
  );
  const rolled = await rollup({
    input,
    external: (id) => !path.isAbsolute(id) && !id.startsWith(".") && !isBundled(id),
    plugins: [dts({ respectExternal: true, compilerOptions: { moduleResolution: ts.ModuleResolutionKind.Bundler } })],
    onwarn: ({ code, message }) => {
      if (code === "UNRESOLVED_IMPORT") throw new Error(`declarations: ${message}`);
      process.stderr.write(`declarations: ${message}\n`);
    },
  });
  const { output } = await rolled.write({
    dir: folder,
    format: "es",
    entryFileNames: "[name].d.ts",
    chunkFileNames: "shared-[hash].d.ts",
  });
  await rolled.close();
  const made = new Set(output.map(({ fileName }) => fileName));
  return packagesIn(output.flatMap(({ imports }) => imports.filter((name) => !made.has(name))));
}
