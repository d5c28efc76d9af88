import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { bundleCli } from "../bootstrap/bundle-cli.mjs";
import { root } from "../bootstrap/layout.mjs";
import { bundleLibrary, entryPoints, rollDeclarations } from "./library.mjs";
import { publishedManifest } from "./manifest.mjs";
import { thirdPartyNotices } from "./notices.mjs";
import { npmPack } from "./npm-pack.mjs";
import { isOurs } from "./package-of.mjs";

const client = path.join(root, "packages/client");
const readManifest = (name) => JSON.parse(readFileSync(path.join(root, "packages", name, "package.json"), "utf8"));

/** Lays the package out in a folder, as it will be installed. Needs the build. */
async function stage(folder) {
  const manifests = { client: readManifest("client"), core: readManifest("core") };
  const entries = entryPoints(manifests.client.exports);
  const external = Object.keys(manifests.client.dependencies).filter((name) => !isOurs(name));
  const lib = path.join(folder, "lib");
  const cli = await bundleCli({ folder: path.join(folder, "bundle/cli"), external: ["@opentelemetry/*"] });
  const imports = await bundleLibrary({ entries, folder: lib, external });
  const typeImports = await rollDeclarations({ entries, folder: lib });
  const manifest = publishedManifest({ ...manifests, entries, imports: [...imports, ...typeImports] });
  writeFileSync(path.join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  writeFileSync(path.join(folder, "THIRD-PARTY-NOTICES.txt"), thirdPartyNotices(cli));
  cpSync(path.join(client, "bin"), path.join(folder, "bin"), { recursive: true });
  cpSync(path.join(client, "README.md"), path.join(folder, "README.md"));
  cpSync(path.join(root, "LICENSE"), path.join(folder, "LICENSE"));
}

/** Makes the tarball of `@turnbox/client` in a folder and answers with its path. */
export async function makeTarball(into) {
  const staging = mkdtempSync(path.join(tmpdir(), "turnbox-pack-"));
  try {
    await stage(staging);
    mkdirSync(into, { recursive: true });
    return await npmPack(staging, into);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}
