import { existsSync } from "node:fs";
import path from "node:path";
import { runCommand } from "../bootstrap/command.mjs";
import { compiler, root } from "../bootstrap/layout.mjs";

/** Why there is nothing to compare the protos with, or undefined. */
async function noPreviousCommit(env) {
  const git = (...args) => runCommand(["git", ...args], { cwd: root, env, timeoutMs: 30_000 });
  const shallow = await git("rev-parse", "--is-shallow-repository");
  if (shallow.code !== 0) return "this is not a git clone";
  const previous = await git("cat-file", "-e", "HEAD~1:buf.yaml");
  if (previous.code === 0) return undefined;
  return shallow.stdout.trim() === "true" ? "the clone is shallow" : "there is no previous commit with protos";
}

/**
 * The checks of `npm test` besides the tests. `skipped` returns why a check does not apply here; one with
 * `onFailure: "warn"` prints its output and fails nothing.
 */
export function listChecks(toolchain) {
  const node = (...argv) => [toolchain.node(), ...argv];
  return [
    { name: "buf lint", argv: ["buf", "lint"] },
    {
      name: "buf breaking",
      argv: ["buf", "breaking", "--against", ".git#ref=HEAD~1"],
      skipped: () => noPreviousCommit(toolchain.environment),
      onFailure: "warn",
    },
    {
      name: "generated documents are fresh",
      argv: node("scripts/docs.mjs", "--check"),
      skipped: () => (existsSync(path.join(root, "scripts/docs.mjs")) ? undefined : "there are no generated documents"),
    },
    { name: "packages that others install (publint, attw)", argv: node("scripts/pack/check.mjs") },
    { name: "format (biome)", argv: ["biome", "format", "."] },
    { name: "types of tests (tsc)", argv: node(compiler, "-p", "tsconfig.test.json") },
    { name: "lint (eslint)", argv: ["eslint", ".", "--max-warnings", "0"] },
  ];
}
