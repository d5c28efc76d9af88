/**
 * A command line for a POSIX shell that runs exactly these words. Every word is quoted, the first one too: unquoted it
 * could be a keyword (`time`), an assignment (`A=1`) or a pattern.
 */
export function quoteCommand(words: readonly string[]): string {
  return words.map(quoteWord).join(" ");
}

/** One word in single quotes; a single quote inside leaves them, stands escaped, and enters them again. */
export function quoteWord(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
