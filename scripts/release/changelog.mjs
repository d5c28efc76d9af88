const UNRELEASED = "## [Unreleased]";

/**
 * The section below a heading, without it; undefined if there is no such heading.
 *
 * @param {string} text
 * @param {string} heading
 */
function sectionOf(text, heading) {
  const lines = text.split("\n");
  const from = lines.findIndex((line) => line === heading || line.startsWith(`${heading} `));
  if (from < 0) return undefined;
  const length = lines.slice(from + 1).findIndex((line) => line.startsWith("## "));
  return lines
    .slice(from + 1, length < 0 ? undefined : from + 1 + length)
    .join("\n")
    .trim();
}

/**
 * What CHANGELOG.md says of what is not released yet. Throws if that is nothing, or has no group of Keep a Changelog.
 *
 * @param {string} text
 */
export function notesOf(text) {
  const notes = sectionOf(text, UNRELEASED);
  if (notes === undefined) throw new Error(`CHANGELOG.md has no heading ${UNRELEASED}`);
  if (!/^### (Added|Changed|Deprecated|Removed|Fixed|Security)\n+- /m.test(notes))
    throw new Error(`CHANGELOG.md says nothing under ${UNRELEASED}`);
  return notes;
}

/**
 * CHANGELOG.md with what was not released under the heading of a version, and an empty section for what comes next.
 *
 * @param {string} text
 * @param {{ version: string, date: string }} release
 */
export function withRelease(text, { version, date }) {
  if (sectionOf(text, `## [${version}]`) !== undefined) throw new Error(`CHANGELOG.md has ${version} already`);
  return text.replace(`${UNRELEASED}\n`, `${UNRELEASED}\n\n## [${version}] - ${date}\n`);
}
