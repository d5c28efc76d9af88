import path from "node:path";
import { main } from "./bootstrap/bootstrap.mjs";
import { exitCodeOf } from "./bootstrap/child.mjs";
import { root } from "./bootstrap/layout.mjs";

/** Measures of the form of the code against test/house/limits.json: `npm run house -- --list` names what they find. */
const measures = path.join(root, "scripts/house/main.mjs");

await main(async ({ run, toolchain }) => exitCodeOf(await run([toolchain.node(), measures, ...process.argv.slice(2)])));
