// Everything that a terminal would act upon instead of showing it, and what reorders the text around it.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const escaped = (character: string): string => `\\u{${character.codePointAt(0)?.toString(16).padStart(4, "0") ?? ""}}`;

/**
 * A name or a path on one line of a terminal. What is inside a sandbox chooses its file names; none of them shall move
 * the cursor, set a title or look like another one.
 */
export function printable(text: string): string {
  return text.replaceAll(UNPRINTABLE, escaped);
}

/** The same for text of several lines, whose line ends and tabs stay. */
export function printableText(text: string): string {
  return text.replaceAll(UNPRINTABLE, (character) =>
    character === "\n" || character === "\t" ? character : escaped(character),
  );
}
