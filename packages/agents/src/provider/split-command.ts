import { invalidArgument } from "@turnbox/client/internal";

/** One word, one piece of quoting, or what is between words. */
const TOKEN = /\s+|'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])|[^\s'"\\]+/y;

/**
 * The words of a command line, with a shell's quoting and nothing else of a shell: no variables, no patterns, no
 * operators. What would be one of these is an ordinary character.
 */
export function splitCommand(line: string): readonly [string, ...string[]] {
  if (line.includes("\0")) throw invalidArgument("agentCommand", "must have no NUL");
  const words: string[] = [];
  let word: string | undefined;
  for (let at = 0; at < line.length; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(line);
    if (match === null) throw invalidArgument("agentCommand", "has a quote or backslash without its end");
    if (/^\s/.test(match[0])) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + textOf(match);
  }
  if (word !== undefined) words.push(word);
  const [command, ...args] = words;
  if (command === undefined || command === "") throw invalidArgument("agentCommand", "must name a command");
  return [command, ...args];
}

function textOf([whole, single, double, escaped]: RegExpExecArray): string {
  // In double quotes a backslash escapes only what would mean something there.
  return single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? escaped ?? whole;
}
