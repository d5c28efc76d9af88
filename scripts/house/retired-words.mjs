import { listIdentifiers, listLogMessages, listTestNames, wordsOf } from "./words.mjs";

/** Whether the words of a retired name stand together among those of an identifier, the last one also as a plural. */
export function isInName(name, { word, except }) {
  if (except.includes(name.replace(/^#/, ""))) return false;
  const text = ` ${wordsOf(name).join(" ")} `;
  return text.includes(` ${word} `) || text.includes(` ${word}s `);
}

export const isInText = (text, { word }) => new RegExp(`\\b${word}s?\\b`, "i").test(text);

/** Names, log messages and names of tests that hold a retired word, one for each word. */
export function retiredWords(sources, retired) {
  const names = listIdentifiers(sources);
  const texts = [...listLogMessages(sources), ...listTestNames(sources)].filter(({ text }) => text !== undefined);
  return retired.flatMap((entry) => {
    const found = [];
    if (entry.where.includes("names")) found.push(...names.filter(({ text }) => isInName(text, entry)));
    if (entry.where.includes("texts")) found.push(...texts.filter(({ text }) => isInText(text, entry)));
    return found.map(({ at, text }) => ({ at, what: `"${entry.word}" in "${text}": say ${entry.instead}` }));
  });
}
