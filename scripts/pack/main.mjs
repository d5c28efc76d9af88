import { readFileSync } from "node:fs";
import path from "node:path";
import { root } from "../bootstrap/layout.mjs";
import { makePlaceholder } from "./placeholder.mjs";
import { makeTarballs } from "./tarball.mjs";

// Into the folder that is given; after the first line, each says where a tarball is, in the order of publishing.
const into = process.argv[2] ?? path.join(root, "dist-pack");
const workspace = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
process.stdout.write(`publish first, to hold the name: ${await makePlaceholder(into, workspace)}\n`);
const { libraries, program } = await makeTarballs(into);
for (const tarball of [...libraries, program]) process.stdout.write(`${tarball}\n`);
