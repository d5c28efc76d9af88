import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { npmPack } from "./npm-pack.mjs";

/** The name of the command line without a scope: `npx` takes it for the name of a package. */
export const RESERVED_NAME = "turnbox";

/** A package that runs nothing and says where the real one is. */
export function placeholderManifest({ license }) {
  return {
    name: RESERVED_NAME,
    version: "0.0.0",
    description: "A reserved name. Later versions are the command line turnbox.",
    license,
    files: ["README.md"],
    publishConfig: { access: "public" },
  };
}

/** Makes the tarball that holds the name in a folder and answers with its path. */
export async function makePlaceholder(into, { license }) {
  const staging = mkdtempSync(path.join(tmpdir(), "turnbox-placeholder-"));
  try {
    const manifest = placeholderManifest({ license });
    mkdirSync(into, { recursive: true });
    writeFileSync(path.join(staging, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    writeFileSync(path.join(staging, "README.md"), `# ${RESERVED_NAME}\n\n${manifest.description}\n`);
    return await npmPack(staging, into);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}
