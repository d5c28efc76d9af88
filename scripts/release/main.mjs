import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { requireCommand, runCommand } from "../bootstrap/command.mjs";
import { root } from "../bootstrap/layout.mjs";
import { makeTarballs } from "../pack/tarball.mjs";
import { judgeBreaking, tagOf } from "./breaking.mjs";
import { notesOf, withRelease } from "./changelog.mjs";
import { checksumsOf } from "./checksums.mjs";
import { listManifests, oneVersion, withVersion } from "./manifests.mjs";
import { compareVersions, versionToRelease } from "./version.mjs";

const USAGE = "usage: npm run release [-- [--dry-run] [major|minor|patch|VERSION]]";
const print = (line) => process.stdout.write(`${line}\n`);
const options = { cwd: root, env: process.env, timeoutMs: 120_000 };
const git = async (...args) => (await requireCommand(["git", ...args], options)).stdout.trim();

/** The latest version that a tag names; undefined if none does. */
async function lastRelease() {
  const tags = (await git("tag", "--list", "v*")).split("\n").map((tag) => tag.slice(1));
  return tags
    .filter((version) => /^\d+\.\d+\.\d+$/.test(version))
    .sort(compareVersions)
    .at(-1);
}

async function checkProtocol(version, last) {
  if (last === undefined) return judgeBreaking({ version });
  const { code, tail } = await runCommand(["buf", "breaking", "--against", `.git#tag=${tagOf(last)}`], options);
  return judgeBreaking({ version, last, findings: code === 0 ? "" : tail });
}

async function release({ isDry, wanted }) {
  const manifests = listManifests(root);
  const last = await lastRelease();
  const version = versionToRelease({ current: oneVersion(manifests), last, wanted });
  const changelog = readFileSync(path.join(root, "CHANGELOG.md"), "utf8");
  const notes = notesOf(changelog);
  if (!isDry && (await git("status", "--porcelain")) !== "")
    throw new Error("the work tree has changes: commit them first");
  print(`version: ${version} (${last === undefined ? "no release before it" : `after ${last}`})`);
  const protocol = await checkProtocol(version, last);
  print(protocol.text);
  if (protocol.fails) return 1;

  const into = path.join(root, "dist-release");
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into);
  const { libraries, program } = await makeTarballs(into, { version });
  const files = [...libraries, program];
  writeFileSync(path.join(into, "NOTES.md"), `${notes}\n`);
  writeFileSync(path.join(into, "SHA256SUMS"), checksumsOf(files));
  print(`\n${notes}\n`);
  for (const file of [...files, path.join(into, "NOTES.md"), path.join(into, "SHA256SUMS")])
    print(path.relative(root, file));
  if (isDry) {
    print("dry run: no version was changed");
    return 0;
  }
  for (const { file, text } of manifests) writeFileSync(path.join(root, file), withVersion(text, version));
  const date = new Date().toISOString().slice(0, 10);
  writeFileSync(path.join(root, "CHANGELOG.md"), withRelease(changelog, { version, date }));
  print(
    `next: git commit -am "Release ${version}" && git tag ${tagOf(version)}, then publish dist-release/ as CONTRIBUTING.md says`,
  );
  return 0;
}

const words = process.argv.slice(2);
const [wanted, ...others] = words.filter((word) => word !== "--dry-run");
if (others.length > 0 || wanted?.startsWith("-")) {
  print(USAGE);
  process.exit(2);
}
try {
  process.exitCode = await release({ isDry: words.includes("--dry-run"), wanted });
} catch (cause) {
  print(`release: ${cause.message}`);
  process.exitCode = 1;
}
