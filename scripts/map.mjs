import path from "node:path";
import { main } from "./bootstrap/bootstrap.mjs";
import { exitCodeOf } from "./bootstrap/child.mjs";
import { root } from "./bootstrap/layout.mjs";

/** Draws docs/img/house.svg: the packages and rooms with the imports that there are. */
const map = path.join(root, "scripts/house/map-main.mjs");

await main(async ({ run, toolchain }) => exitCodeOf(await run([toolchain.node(), map])));
