import { writeFileSync } from "node:fs";
import path from "node:path";
import { root } from "../bootstrap/layout.mjs";
import { drawMap, MAP } from "./map.mjs";

writeFileSync(path.join(root, MAP), drawMap(root));
process.stdout.write(`${MAP}: written\n`);
