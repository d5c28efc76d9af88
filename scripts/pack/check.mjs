import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { runCommand } from "../bootstrap/command.mjs";
import { root } from "../bootstrap/layout.mjs";
import { makeTarballs } from "./tarball.mjs";

/** Makes the tarballs and has their manifests judged, and the types of the libraries, as a project of modules sees them. */
const publint = (tarball) => ["publint", "--strict", tarball];
const attw = (tarball) => ["attw", tarball, "--profile", "esm-only", "--format", "ascii", "--no-color", "--no-emoji"];

const folder = mkdtempSync(path.join(tmpdir(), "turnbox-pack-check-"));
try {
  const { libraries, program } = await makeTarballs(folder);
  for (const argv of [...libraries.flatMap((tarball) => [publint(tarball), attw(tarball)]), publint(program)]) {
    const { code, tail } = await runCommand(argv, { cwd: root, env: process.env, timeoutMs: 120_000 });
    const name = path.basename(argv.find((part) => part.endsWith(".tgz")));
    process.stdout.write(`${argv[0]} ${name}: ${code === 0 ? "no objections" : tail}\n`);
    if (code !== 0) process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
