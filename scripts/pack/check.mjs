import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { runCommand } from "../bootstrap/command.mjs";
import { root } from "../bootstrap/layout.mjs";
import { makeTarball } from "./tarball.mjs";

/** Makes the tarball of the client and has its manifest and its types judged, as a project of modules sees them. */
const judges = (tarball) => [
  ["publint", "--strict", tarball],
  ["attw", tarball, "--profile", "esm-only", "--format", "ascii", "--no-color", "--no-emoji"],
];

const folder = mkdtempSync(path.join(tmpdir(), "turnbox-pack-check-"));
try {
  const tarball = await makeTarball(folder);
  for (const argv of judges(tarball)) {
    const { code, tail } = await runCommand(argv, { cwd: root, env: process.env, timeoutMs: 120_000 });
    process.stdout.write(`${argv[0]}: ${code === 0 ? "no objections" : tail}\n`);
    if (code !== 0) process.exitCode = 1;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
