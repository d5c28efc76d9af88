import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { bundleCli } from "../bootstrap/bundle-cli.mjs";
import { root } from "../bootstrap/layout.mjs";
import { bundleLibrary, rollDeclarations } from "./library.mjs";
import { libraryManifest, programManifest } from "./manifest.mjs";
import { thirdPartyNotices } from "./notices.mjs";
import { npmPack } from "./npm-pack.mjs";
import { isOurs } from "./package-of.mjs";
import { entryPoints, LIBRARIES, PROGRAM, PUBLISHED, readManifest } from "./packages.mjs";

function writeCommon(into, folder, manifest) {
  writeFileSync(path.join(into, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  cpSync(path.join(root, "packages", folder, "README.md"), path.join(into, "README.md"));
  cpSync(path.join(root, "LICENSE"), path.join(into, "LICENSE"));
}

/** Lays a library out in a folder, as it will be installed. Needs the build. */
async function stageLibrary(into, library, readManifest) {
  const manifest = readManifest(library.folder);
  const entries = entryPoints(library, manifest.exports);
  const outside = PUBLISHED.filter((name) => name !== manifest.name);
  const external = [...Object.keys(manifest.dependencies).filter((name) => !isOurs(name)), ...outside];
  const lib = path.join(into, "lib");
  const imports = await bundleLibrary({ name: manifest.name, entries, folder: lib, external });
  const typeImports = await rollDeclarations({ entries, folder: lib, outside });
  writeCommon(into, library.folder, libraryManifest({ manifest, entries, imports: [...imports, ...typeImports] }));
}

async function stageProgram(into, readManifest) {
  const cli = await bundleCli({ folder: path.join(into, "bundle"), external: ["@opentelemetry/*"] });
  writeFileSync(path.join(into, "THIRD-PARTY-NOTICES.txt"), thirdPartyNotices(cli));
  for (const folder of ["bin", "shell"])
    cpSync(path.join(root, "packages", PROGRAM.folder, folder), path.join(into, folder), { recursive: true });
  writeCommon(
    into,
    PROGRAM.folder,
    programManifest({ manifest: readManifest(PROGRAM.folder), rpc: readManifest("rpc") }),
  );
}

async function pack(into, stage) {
  const staging = mkdtempSync(path.join(tmpdir(), "turnbox-pack-"));
  try {
    await stage(staging);
    mkdirSync(into, { recursive: true });
    return await npmPack(staging, into);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

/**
 * Makes the tarballs of what is published in a folder; returns their paths, in the order of publishing. They have the version
 * of the packages unless another one is given.
 */
export async function makeTarballs(into, { version } = {}) {
  const read = (folder) => ({ ...readManifest(folder), ...(version === undefined ? {} : { version }) });
  const libraries = [];
  for (const library of LIBRARIES) libraries.push(await pack(into, (staging) => stageLibrary(staging, library, read)));
  return { libraries, program: await pack(into, (staging) => stageProgram(staging, read)) };
}
