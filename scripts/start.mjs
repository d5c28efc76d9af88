import path from "node:path";
import { main } from "./bootstrap/bootstrap.mjs";
import { exitCodeOf } from "./bootstrap/child.mjs";
import { root } from "./bootstrap/layout.mjs";

const cli = path.join(root, "packages/cli/bin/turnbox.mjs");

await main(async ({ run, toolchain }) =>
  exitCodeOf(await run([toolchain.node(), cli, "up", ...process.argv.slice(2)])),
);
