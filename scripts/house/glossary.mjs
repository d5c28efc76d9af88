import { readFileSync } from "node:fs";
import path from "node:path";

/** The rows of the table below a heading of a document, each a list of cells. */
export function readTable(text, heading) {
  const [, section = ""] = text.split(new RegExp(`^## ${heading}$`, "m"));
  const [body = ""] = section.split(/^## /m);
  const rows = body.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((row) =>
    row
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

const list = (cell) =>
  cell
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "");

/** The retired words of the glossary: where they are retired, what is said instead and which names may stay. */
export function readRetired(root) {
  const text = readFileSync(path.join(root, "docs/GLOSSARY.md"), "utf8");
  return readTable(text, "Retired").map(([word = "", where = "", instead = "", except = ""]) => ({
    word,
    where: list(where),
    instead,
    except: list(except),
  }));
}
