import path from "node:path";
import { main } from "./bootstrap/bootstrap.mjs";
import { exitCodeOf } from "./bootstrap/child.mjs";
import { root } from "./bootstrap/layout.mjs";

const simulator = path.join(root, "test/sim/main.ts");

await main(async ({ run, toolchain }) =>
  exitCodeOf(await run([toolchain.node(), simulator, ...process.argv.slice(2)])),
);
