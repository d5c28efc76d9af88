import { displayWidth } from "./display-width.ts";

/** Breaks text between words so that no line is wider than `width`, lines after the first indented. Words stay whole. */
export function wrapWords(
  text: string,
  { width, indent }: { readonly width: number; readonly indent: string },
): string {
  const lines = text.split("\n").map((line) => {
    let filled = 0;
    return line
      .split(" ")
      .map((word, index) => {
        const wordWidth = displayWidth(word);
        if (index === 0) {
          filled = wordWidth;
          return word;
        }
        if (filled + 1 + wordWidth <= width) {
          filled += 1 + wordWidth;
          return ` ${word}`;
        }
        filled = indent.length + wordWidth;
        return `\n${indent}${word}`;
      })
      .join("");
  });
  return lines.join(`\n${indent}`);
}
