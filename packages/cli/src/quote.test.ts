import { execFileSync } from "node:child_process";
import { describe, expect, it } from "@jest/globals";
import { quoteCommand, quoteWord } from "./quote.ts";

const printWords = ["printf", "%s\\0", "--"];

/** What a real shell makes of the quoted words. */
function throughShell(words: readonly string[]): string[] {
  const out = execFileSync("sh", ["-c", quoteCommand(["/usr/bin/printf", "%s\\0", ...words])], { encoding: "utf8" });
  return out.split("\0").slice(0, -1);
}

describe("quoteCommand", () => {
  it.each([
    ["plain words", ["a", "b"]],
    ["spaces and tabs", ["a b", "\tc "]],
    ["single quotes", ["it's", "'", "''", "a'b'c"]],
    ["double quotes and backslashes", ['"x"', "\\", "\\n", "\\'"]],
    ["expansions", ["$HOME", "`id`", "$(id)", "${x}", "*", "?", "[a]", "~", "{a,b}", "!!"]],
    ["operators", ["|", "&&", ";", ">", "<", "&", "#", "(", ")"]],
    ["line ends", ["a\nb", "\n", "\r\n"]],
    ["an empty word", ["x", "", "y"]],
    ["words that look like options", ["-n", "--", "-"]],
    ["text beyond ASCII", ["äöü", "日本", "\u{1f600}"]],
  ])("brings %s through a real shell unchanged", (_name, words) => {
    expect(throughShell(words)).toEqual(words);
  });

  it("keeps the first word from being a keyword or an assignment", () => {
    const run = (words: string[]): string =>
      execFileSync("sh", ["-c", `${quoteCommand(words)} 2>/dev/null || echo not-run`], { encoding: "utf8" });
    expect(run(["A=1"])).toBe("not-run\n");
    expect(run(["!"])).toBe("not-run\n");
    expect(quoteCommand(printWords)).toBe("'printf' '%s\\0' '--'");
  });
});

describe("quoteWord", () => {
  it("writes a single quote outside of the quotes", () => {
    expect(quoteWord("it's")).toBe("'it'\\''s'");
  });
});
