import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import path from "node:path";

/**
 * The lines that `sha256sum -c` reads in the folder of the files.
 *
 * @param {readonly string[]} files
 */
export const checksumsOf = (files) =>
  files
    .map((file) => `${createHash("sha256").update(readFileSync(file)).digest("hex")}  ${path.basename(file)}\n`)
    .join("");
