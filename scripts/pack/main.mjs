import path from "node:path";
import { root } from "../bootstrap/layout.mjs";
import { makeTarball } from "./tarball.mjs";

// Into the folder that is given; the last line is where the tarball is.
process.stdout.write(`${await makeTarball(process.argv[2] ?? path.join(root, "dist-pack"))}\n`);
