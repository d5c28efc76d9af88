/** A heading and what stands below it, as typedoc writes them, up to the next heading. */
const SECTION = /^(#{2,6}) (.*)\n([^]*?)(?=^#{1,6} |^\*\*\*$|$(?![^]))/gm;

/** Sections that repeat the signature above them, or tell where something is inherited from. */
const REPEATED = new Set(["Returns", "Inherited from", "Overrides", "Implementation of", "Extended by"]);

const isRepeated = (title, body) =>
  REPEATED.has(title) || (/^(Type )?Parameters$/.test(title) && !body.includes("| Description |"));

/** Members are found by the signature below their heading, and need none. */
function tidySection(whole, marks, title, body) {
  if (isRepeated(title, body)) return "";
  if (title === "Extends") return `Extends ${body.trim().replaceAll(/^- /gm, "").replaceAll("\n", ", ")}.\n\n`;
  return marks.length > 4 && !/^(Parameters|Example|Throws)/.test(title) ? body : whole;
}

/** What a heading is found by, the first time that it is used in a document. */
const anchorOf = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");

/** Points links at the headings that are left; what has none is only named. */
function linkToHeadings(text) {
  const anchors = new Set([...text.matchAll(/^#{2,3} (.*)$/gm)].map(([, title]) => anchorOf(title)));
  return text
    .replaceAll(/<a id="[^"]*"><\/a> /g, "")
    .replaceAll(/\[(`?)([^\]`]+)`?\]\((?:[\w./-]+\.md)?#[^)]*\)/g, (_, mark, name) =>
      anchors.has(anchorOf(name)) ? `[${mark}${name}${mark}](#${anchorOf(name)})` : `${mark}${name}${mark}`,
    );
}

/** Leaves out of typedoc's text what a reader of signatures knows already. */
export function tidyMarkdown(text) {
  const lean = linkToHeadings(text.replaceAll(SECTION, tidySection));
  return `${lean
    .replaceAll(/^\*\*\*$/gm, "")
    .replaceAll(/[ \t]+$/gm, "")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim()}\n`;
}

/** One line for each chapter (`##`) with links to what is in it (`###`). */
export function contentsOf(text) {
  const chapters = [];
  for (const [, marks, title] of text.matchAll(/^(##|###) (.*)$/gm)) {
    const link = `[${title.replace(/\(\)$/, "")}](#${anchorOf(title)})`;
    if (marks === "##") chapters.push({ link, names: [] });
    else chapters.at(-1)?.names.push(link);
  }
  return chapters.map(({ link, names }) => `- **${link}**: ${names.join(", ")}`).join("\n");
}
