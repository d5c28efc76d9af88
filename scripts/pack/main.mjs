import path from "node:path";
import { readFileSync } from "node:fs";
import { root } from "../bootstrap/layout.mjs";
import { makePlaceholder } from "./placeholder.mjs";
import { makeTarball } from "./tarball.mjs";

// Into the folder that is given; the last line is where the client's tarball is.
const into = process.argv[2] ?? path.join(root, "dist-pack");
const workspace = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
process.stdout.write(`publish first, to hold the name: ${await makePlaceholder(into, workspace)}\n`);
process.stdout.write(`${await makeTarball(into)}\n`);
