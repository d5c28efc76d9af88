import { readFileSync } from "node:fs";
import path from "node:path";
import { root } from "../bootstrap/layout.mjs";

/**
 * What is published, in the order in which it is. A library is bundled with what it takes from our packages that are not
 * published themselves; `hidden` entry points are for the workspace alone.
 */
export const LIBRARIES = [
  { folder: "client", hidden: ["./fake"] },
  { folder: "agents", hidden: ["./mcp"] },
];
export const PROGRAM = { folder: "cli" };

/** Our packages that others install; a library leaves those it uses outside. */
export const PUBLISHED = ["@turnbox/client", "@turnbox/agents"];

export const readManifest = (folder) =>
  JSON.parse(readFileSync(path.join(root, "packages", folder, "package.json"), "utf8"));

/** The published entry points by the name of their file: `./testing` is `testing`, `.` is `index`. */
export const entryPoints = ({ folder, hidden }, exports) =>
  Object.fromEntries(
    Object.entries(exports)
      .filter(([key]) => !hidden.includes(key))
      .map(([key, { default: file }]) => [
        key === "." ? "index" : key.replace(/^\.\//, ""),
        path.join("packages", folder, file),
      ]),
  );
