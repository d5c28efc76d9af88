import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "@jest/globals";
import { readTable } from "../../scripts/house/glossary.mjs";
import { ROOMS } from "../../scripts/lint/rooms.mjs";

const root = path.resolve(import.meta.dirname, "../..");
const text = readFileSync(path.join(root, "docs/ARCHITECTURE.md"), "utf8");

interface Rooms {
  readonly rows?: readonly (readonly string[])[];
}
/** What is generated is one room for all, and stands in no table. */
const packages = Object.entries(ROOMS as Readonly<Record<string, Rooms>>).filter(([name]) => name !== "protocol");

/** The rooms of a package that have a line: its table stands below its name. */
function roomsWithLine(name: string): readonly string[] {
  const section = text.split(new RegExp(`^### ${name}$`, "m"))[1] ?? "";
  const rows = readTable(`## Rooms\n${section.split(/^##/m)[0] ?? ""}`, "Rooms") as readonly (readonly string[])[];
  const described = rows.filter(([, what = ""]) => what !== "");
  return described.map(([room = ""]) => /^`([a-z-]+)\/`$/.exec(room)?.[1] ?? room);
}

const foldersOf = (name: string): readonly string[] =>
  readdirSync(path.join(root, "packages", name, "src"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);

describe("docs/ARCHITECTURE.md", () => {
  it("opens with the map", () => {
    expect(text.split("\n").filter((line) => line !== "")[1]).toContain("](img/house.svg)");
  });

  it.each(packages)("says in one line for each room of %s what belongs there", (name, { rows = [] }) => {
    expect(roomsWithLine(name).toSorted()).toEqual([...new Set([...foldersOf(name), ...rows.flat()])].toSorted());
  });
});

describe("docs/decisions/README.md", () => {
  it("has each decision once, by subject", () => {
    const folder = path.join(root, "docs/decisions");
    const linked = [...readFileSync(path.join(folder, "README.md"), "utf8").matchAll(/\]\((\d{4}-[\w-]+\.md)\)/g)];
    const files = readdirSync(folder).filter((name) => /^\d{4}-/.test(name));
    expect(linked.map(([, file]) => file).toSorted()).toEqual(files.toSorted());
  });
});
