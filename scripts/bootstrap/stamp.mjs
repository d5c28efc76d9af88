import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";

/** All files at or below `entry`, sorted; nothing when it does not exist. */
export function listFiles(entry) {
  const status = statSync(entry, { throwIfNoEntry: false });
  if (status === undefined) return [];
  if (status.isFile()) return [entry];
  return readdirSync(entry, { withFileTypes: true })
    .filter((child) => child.name !== "node_modules")
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((child) => listFiles(path.join(entry, child.name)));
}

/** One hash over the names and bytes of all files at or below the entries, and over `facts`. */
export function digest(entries, { base, facts = [] }) {
  const hash = createHash("sha256");
  for (const fact of facts) hash.update(`fact ${fact}\0`);
  for (const file of entries.flatMap((entry) => listFiles(path.resolve(base, entry)))) {
    const content = readFileSync(file);
    hash.update(`${path.relative(base, file)}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex");
}

/** The record that a step has turned these inputs into these outputs. Either one changing makes it stale. */
export function createStamp({ folder, name, inputs, outputs }) {
  const file = path.join(folder, name);
  const read = () => {
    try {
      return JSON.parse(readFileSync(file, "utf8"));
    } catch {
      return undefined;
    }
  };
  return {
    isFresh() {
      const seen = read();
      return seen !== undefined && seen.inputs === inputs() && seen.outputs === outputs();
    },
    clear() {
      rmSync(file, { force: true });
    },
    write() {
      mkdirSync(folder, { recursive: true });
      const draft = `${file}.${process.pid}`;
      writeFileSync(draft, JSON.stringify({ inputs: inputs(), outputs: outputs() }));
      renameSync(draft, file);
    },
  };
}
