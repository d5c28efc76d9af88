import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/** The manifests of the workspace and of all its packages, by their paths from `root`. */
export function listManifests(root) {
  const folders = readdirSync(path.join(root, "packages")).map((name) => `packages/${name}`);
  return [".", ...folders]
    .map((folder) => path.posix.join(folder, "package.json"))
    .filter((file) => existsSync(path.join(root, file)))
    .map((file) => ({ file, text: readFileSync(path.join(root, file), "utf8") }));
}

/** The version that all manifests have; throws if they disagree. */
export function oneVersion(manifests) {
  const versions = manifests.map(({ file, text }) => ({ file, version: JSON.parse(text).version }));
  const [first] = versions;
  const other = versions.find(({ version }) => version !== first.version);
  if (other !== undefined)
    throw new Error(`${first.file} has the version ${first.version}, and ${other.file} has ${other.version}`);
  return first.version;
}

/** The text of a manifest with another version, and otherwise as it is. */
export const withVersion = (text, version) => text.replace(/^(\s*"version": )"[^"]*"/m, `$1"${version}"`);
