import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createWalk, type Walk } from "../../file/walk.ts";
import type { Parameters } from "../parameters.ts";
import type { TextOutcome } from "./outcome.ts";
import { textTool } from "./text-tool.ts";
import type { TextToolName } from "./text-tools.ts";

let root = "";
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "turnbox-text-"));
  mkdirSync(join(root, "workspace"));
});
afterEach(async () => {
  await rm(root, { recursive: true, force: true });
});

const call = (tool: TextToolName, parameters: Parameters): TextOutcome => {
  using walk = createWalk(root);
  return textTool({ walk }, { tool, parameters });
};
const put = (path: string, content: string | Uint8Array): void => {
  mkdirSync(dirname(join(root, "workspace", path)), { recursive: true });
  writeFileSync(join(root, "workspace", path), content);
};
const contentOf = (path: string): string => readFileSync(join(root, "workspace", path), "utf8");
const said = (tool: TextToolName, parameters: Parameters): string => {
  const { content, isError } = call(tool, parameters);
  expect(isError).toBe(false);
  return content;
};
const refusal = (tool: TextToolName, parameters: Parameters): string => {
  const { content, isError } = call(tool, parameters);
  expect(isError).toBe(true);
  return content;
};
const numbers = (count: number): string => Array.from({ length: count }, (_, index) => `line ${index + 1}\n`).join("");

describe("read_file", () => {
  it("numbers lines from 1, with and without a line end at the end", () => {
    put("a.txt", "one\ntwo\n");
    expect(said("read_file", { path: "a.txt" })).toBe("     1\tone\n     2\ttwo");
    put("b.txt", "one\n\ntwo");
    expect(said("read_file", { path: "/workspace/b.txt" })).toBe("     1\tone\n     2\t\n     3\ttwo");
  });

  it("reads a part and says where it is and where to go on", () => {
    put("long", numbers(5000));
    expect(said("read_file", { path: "long", offset: 3, limit: 2 })).toBe(
      "     3\tline 3\n     4\tline 4\n[lines 3 to 4 of 5000 lines of long; go on with offset 5]",
    );
    const all = said("read_file", { path: "long" }).split("\n");
    expect(all).toHaveLength(2001);
    expect(all.at(-1)).toBe("[lines 1 to 2000 of 5000 lines of long; go on with offset 2001]");
    expect(said("read_file", { path: "long", offset: 5000 })).toContain("[lines 5000 to 5000 of 5000 lines of long]");
    expect(refusal("read_file", { path: "long", offset: 5001 })).toBe("long has 5000 lines; there is no line 5001.");
  });

  it("cuts long lines and says so, never within a character's bytes", () => {
    put("wide", `${"é".repeat(3000)}\nshort\n`);
    const content = said("read_file", { path: "wide" });
    expect(content).toBe(`     1\t${"é".repeat(2000)}... [the line has 6000 bytes]\n     2\tshort\n[1 long line cut]`);
    put("wide", "x".repeat(20_000_000));
    expect(said("read_file", { path: "wide" }).length).toBeLessThan(2100);
  });

  it("holds the whole answer to a bound and goes on where it stopped", () => {
    put("wide", `${"x".repeat(1500)}\n`.repeat(1000));
    const content = said("read_file", { path: "wide" });
    expect(content.length).toBeLessThan(300 * 1024);
    const next = Number(/offset (\d+)\]$/.exec(content)?.[1]);
    expect(said("read_file", { path: "wide", offset: next }).slice(0, 10)).toBe(`${String(next).padStart(6)}\txxx`);
  });

  it("reads any line of a file of more than 10 MB without holding it", () => {
    put("large", numbers(2_000_000));
    expect(said("read_file", { path: "large", limit: 1 })).toMatch(
      /^ {5}1\tline 1\n\[lines 1 to 1 of \d+ lines or more of large; go on with offset 2\]$/,
    );
    expect(said("read_file", { path: "large", offset: 1_999_999 })).toContain(
      "1999999\tline 1999999\n2000000\tline 2000000",
    );
  });

  it("shows lines without CR and says that line ends are CRLF", () => {
    put("dos", "a\r\nb\r\n");
    expect(said("read_file", { path: "dos" })).toBe("     1\ta\n     2\tb\n[line ends are CRLF]");
  });

  it.each([
    ["line ends of both kinds", Buffer.from("a\r\nb\n\r\n\nc\n")],
    ["bytes that are no UTF-8", Buffer.from("caf\xe9\n\xe2\x82\n\xff\xfe ok\n", "latin1")],
    ["characters of several bytes", Buffer.from("\u{1F600} \u00e9\n\ufeffx\n")],
    ["a line that is cut", Buffer.from(`short\n${"\u00e9".repeat(2500)}\nshort\n`)],
  ])("shows the lines of a small file as it shows those of a large one: %s", (_what, content) => {
    const lines = content.toString("latin1").split("\n").length - 1;
    put("small", content);
    put("large", Buffer.concat([content, Buffer.from(numbers(40_000))]));
    const shown = said("read_file", { path: "small" }).split("\n").slice(0, lines);
    expect(said("read_file", { path: "large", limit: lines }).split("\n").slice(0, lines)).toEqual(shown);
    expect(shown).toHaveLength(lines);
  });

  it("says that a file is empty", () => {
    put("empty", "");
    expect(said("read_file", { path: "empty" })).toBe("empty is empty.");
  });

  it.each([
    ["png", "\x89PNG\r\n\x1a\n", "image/png"],
    ["jpeg", "\xff\xd8\xff\xe0", "image/jpeg"],
    ["gif", "GIF89a", "image/gif"],
    ["webp", "RIFF\0\0\0\0WEBP", "image/webp"],
  ])("gives a %s image as an image, whatever it is called", (_name, magic, mediaType) => {
    const bytes = Buffer.concat([Buffer.from(magic, "latin1"), randomBytes(100)]);
    put("picture.dat", bytes);
    const text = `picture.dat: ${mediaType}, ${bytes.length} bytes`;
    expect(call("read_file", { path: "picture.dat" })).toEqual({
      content: text,
      isError: false,
      blocks: [
        { kind: "text", text },
        { kind: "image", mediaType, base64: bytes.toString("base64") },
      ],
    });
  });

  it("refuses an image of more than 5 MB", () => {
    put("big.png", Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.alloc(5 * 1024 * 1024)]));
    expect(refusal("read_file", { path: "big.png" })).toContain("image/png, 5242888 bytes. Images of at most");
  });

  it("names binary files with type and size instead of showing garbage", () => {
    put("prog", Buffer.from("\x7fELF\x02\0\0", "latin1"));
    expect(refusal("read_file", { path: "prog" })).toBe(
      "prog is not a text file: ELF program or library, 7 bytes. Use bash to look into it.",
    );
    put("data", Buffer.from("abc\0def"));
    expect(refusal("read_file", { path: "data" })).toContain("binary data, 7 bytes");
  });

  it("names what is missing or no file in a result that is an error, with similar names (D18)", () => {
    put("src/server.ts", "x");
    put("src/Server.test.ts", "x");
    expect(refusal("read_file", { path: "src/servr.ts" })).toContain("Did you mean src/server.ts");
    expect(refusal("read_file", { path: "src" })).toContain("it is a directory");
    expect(refusal("read_file", { path: "nowhere/a.txt" })).toContain("nowhere/a.txt");
    expect(refusal("read_file", { path: "/proc/self/environ" })).toContain("not among the session's files");
  });

  it("follows links inside the root and none out of it (D16)", () => {
    put("real.txt", "inside");
    symlinkSync("/workspace/real.txt", join(root, "workspace", "link"));
    symlinkSync("../../../../../../etc/hostname", join(root, "workspace", "out"));
    expect(said("read_file", { path: "link" })).toContain("inside");
    expect(refusal("read_file", { path: "out" })).toContain("nothing is there");
  });
});

describe("a FIFO", () => {
  it("holds up no tool: it is no file to read, and a search passes it over", () => {
    expect(spawnSync("mkfifo", [join(root, "workspace/pipe")], { timeout: 30_000 }).status).toBe(0);
    put("a.txt", "needle");
    expect(refusal("read_file", { path: "pipe" })).toContain("it is no regular file");
    expect(refusal("edit_file", { path: "pipe", old_string: "a", new_string: "b" })).toContain("it is no regular file");
    expect(refusal("write_file", { path: "pipe", content: "x" })).toContain("it is no regular file");
    expect(said("grep", { pattern: "needle" })).toBe("a.txt:1:needle");
    expect(said("list_dir", {})).toBe("a.txt (6 bytes)\npipe (special)");
  });
});

describe("write_file", () => {
  it("says whether it created or replaced, and how much", () => {
    expect(said("write_file", { path: "a.txt", content: "hällo" })).toBe("Created a.txt (6 bytes).");
    expect(said("write_file", { path: "/workspace/a.txt", content: "" })).toBe("Replaced a.txt (0 bytes).");
    expect(contentOf("a.txt")).toBe("");
    expect(said("write_file", { path: "/etc-like", content: "x" })).toBe("Created /etc-like (1 byte).");
  });

  it("needs the parent unless it may make it", () => {
    expect(refusal("write_file", { path: "a/b/c.txt", content: "x" })).toContain("a/b/c.txt");
    expect(said("write_file", { path: "a/b/c.txt", content: "x", create_dirs: true })).toBe(
      "Created a/b/c.txt (1 byte).",
    );
  });

  it("does not replace a directory and keeps the permissions of a file", () => {
    mkdirSync(join(root, "workspace/dir"));
    expect(refusal("write_file", { path: "dir", content: "x" })).toContain("it is a directory");
    put("run.sh", "old");
    chmodSync(join(root, "workspace/run.sh"), 0o755);
    said("write_file", { path: "run.sh", content: "new" });
    expect(statSync(join(root, "workspace/run.sh")).mode & 0o777).toBe(0o755);
  });
});

describe("edit_file", () => {
  const edit = (old_string: string, new_string: string, more: Parameters = {}): Parameters => ({
    path: "a.ts",
    old_string,
    new_string,
    ...more,
  });

  it("replaces a text that occurs once and names its line", () => {
    put("a.ts", "one\ntwo\nthree\n");
    expect(said("edit_file", edit("two\n", "2\n2\n"))).toBe("Replaced 1 occurrence in a.ts, at line 2.");
    expect(contentOf("a.ts")).toBe("one\n2\n2\nthree\n");
  });

  it("takes $ and other special characters as they are, in both texts", () => {
    put("a.ts", "cost: $& (x)\n");
    said("edit_file", edit("$& (x)", "$1 $$ $`"));
    expect(contentOf("a.ts")).toBe("cost: $1 $$ $`\n");
  });

  it("leaves bytes that are not UTF-8 as they are", () => {
    put("a.ts", Buffer.from("\xff\xfe! old \xe9\n", "latin1"));
    said("edit_file", edit("old", "new"));
    expect(readFileSync(join(root, "workspace/a.ts")).toString("latin1")).toBe("\xff\xfe! new \xe9\n");
  });

  it("refuses a text that occurs several times, naming the lines, and replaces all where asked", () => {
    put("a.ts", "x\ny\nx\nx x\n");
    expect(refusal("edit_file", edit("x", "z"))).toBe(
      "old_string is found 4 times in a.ts, at lines 1, 3, 4, 4. Add lines around it until it is unique, or set replace_all.",
    );
    expect(contentOf("a.ts")).toBe("x\ny\nx\nx x\n");
    expect(said("edit_file", edit("x", "z", { replace_all: true }))).toBe(
      "Replaced 4 occurrences in a.ts, at lines 1, 3, 4, 4.",
    );
    expect(contentOf("a.ts")).toBe("z\ny\nz\nz z\n");
  });

  it("refuses to replace a text by itself", () => {
    put("a.ts", "x");
    expect(refusal("edit_file", edit("x", "x"))).toContain("are the same");
  });

  it("does not overwrite what another program wrote since it read the file", () => {
    put("a.ts", "one\n");
    using walk = createWalk(root);
    const racing: Walk = {
      ...walk,
      find: (path, options) => {
        put("a.ts", "one, and more\n");
        return walk.find(path, options);
      },
    };
    const outcome = textTool({ walk: racing }, { tool: "edit_file", parameters: edit("one", "two") });
    expect(outcome).toMatchObject({
      isError: true,
      content: expect.stringContaining("was changed by another program"),
    });
    expect(contentOf("a.ts")).toBe("one, and more\n");
  });

  it("shows the whole of a small file on a mismatch", () => {
    put("a.ts", "one\ntwo\n");
    expect(refusal("edit_file", edit("three", "3"))).toBe(
      "old_string is not in a.ts. The whole file:\n     1\tone\n     2\ttwo",
    );
  });

  it("shows the nearest match of a larger file with line numbers", () => {
    put("a.ts", `${numbers(30)}function add(a, b) {\n    return a + b;\n}\n${numbers(30)}`);
    const content = refusal("edit_file", edit("function add(a, b) {\n    return a - b;\n}", "x"));
    expect(content).toContain("The nearest match is at line 31 (2 of 3 lines are the same but for spaces):");
    expect(content).toContain("    31\tfunction add(a, b) {\n    32\t    return a + b;\n    33\t}");
    expect(content).not.toContain("\tline 20");
  });

  it("finds a line that is only alike", () => {
    put("a.ts", `${numbers(30)}const total = price * count;\n`);
    expect(refusal("edit_file", edit("const total = price * amount;", "x"))).toContain(
      "The nearest match is at line 31 (its first line is like the text):",
    );
    expect(refusal("edit_file", edit("zebra crossing", "x"))).toContain("No line of it is like the text");
  });

  it.each([
    [
      "indentation",
      "\tif (x) {\n\t\ty();\n",
      "  if (x) {\n    y();",
      "It differs only in spaces, tabs or indentation.",
    ],
    ["line ends", "a\r\nb\r\n", "a\nb", "The file's line ends are CRLF"],
    ["case", "Hello World\n", "hello world", "It differs only in upper and lower case."],
  ])("says where only the %s differs", (_name, content, old, reason) => {
    put("a.ts", content);
    expect(refusal("edit_file", edit(old, "x"))).toContain(reason);
  });

  it("says that a file is missing, empty or not text", () => {
    expect(refusal("edit_file", edit("a", "b"))).toContain("nothing is there");
    put("a.ts", "");
    expect(refusal("edit_file", edit("a", "b"))).toContain("The file is empty; use write_file.");
    put("a.ts", Buffer.from([1, 0, 2]));
    expect(refusal("edit_file", edit("a", "b"))).toContain("It is not a text file.");
  });
});

describe("list_dir", () => {
  it("lists one level by default, more where asked, with sizes and kinds", () => {
    put("b.txt", "12345");
    put(".hidden", "");
    put("a/inner/deep.txt", "1");
    symlinkSync("b.txt", join(root, "workspace/link"));
    expect(said("list_dir", {})).toBe(".hidden (0 bytes)\na/\nb.txt (5 bytes)\nlink (link)");
    expect(said("list_dir", { path: "a", depth: 2 })).toBe("inner/\ninner/deep.txt (1 byte)");
  });

  it("says that a directory is empty or missing, and that a file is none", () => {
    put("a.txt", "");
    mkdirSync(join(root, "workspace/void"));
    expect(said("list_dir", { path: "void" })).toBe("void is empty.");
    expect(refusal("list_dir", { path: "vold" })).toContain("Did you mean void?");
    expect(refusal("list_dir", { path: "a.txt" })).toContain("no directory");
  });

  it("counts what it does not show", () => {
    for (let index = 0; index < 1003; index += 1) put(`f${index}`, "");
    expect(said("list_dir", {}).split("\n").at(-1)).toBe("[3 entries not shown]");
  });

  it("does not follow a link into a loop", () => {
    symlinkSync(".", join(root, "workspace/loop"));
    expect(said("list_dir", { depth: 20 })).toBe("loop (link)");
  });
});

describe("glob", () => {
  beforeEach(() => {
    for (const path of ["a.ts", "src/b.ts", "src/c.js", "src/deep/er/d.ts", ".git/e.ts", "src/.hidden.ts"])
      put(path, "");
  });

  it.each([
    ["*.ts", "a.ts"],
    ["**/*.ts", "a.ts\nsrc/b.ts\nsrc/deep/er/d.ts"],
    ["src/**/*.ts", "src/b.ts\nsrc/deep/er/d.ts"],
    ["src/*.{ts,js}", "src/b.ts\nsrc/c.js"],
    ["src/[!c]*", "src/b.ts\nsrc/deep/"],
    ["**/?.ts", "a.ts\nsrc/b.ts\nsrc/deep/er/d.ts"],
    [".git/**", ".git/\n.git/e.ts"],
    ["**/.*.ts", "src/.hidden.ts"],
    ["**/deep", "src/deep/"],
    ["**/**/er/**/*.ts", "src/deep/er/d.ts"],
    ["**/src/**/**", "src/\nsrc/b.ts\nsrc/c.js\nsrc/deep/\nsrc/deep/er/\nsrc/deep/er/d.ts"],
    ["*.py", "Nothing matches."],
  ])("finds %s", (pattern, expected) => {
    expect(said("glob", { pattern })).toBe(expected);
  });

  it("gives paths that other tools take, from wherever it began", () => {
    expect(said("glob", { pattern: "*.ts", path: "src" })).toBe("src/b.ts");
    expect(said("glob", { pattern: "workspace/*.ts", path: "/" })).toBe("a.ts");
    expect(said("glob", { pattern: "*", path: "/" })).toBe("./");
  });

  it("shows at most so many and counts the rest", () => {
    expect(said("glob", { pattern: "**/*.ts", max_results: 1 })).toBe("a.ts\n[2 more paths not shown]");
  });

  it("refuses what is no pattern", () => {
    expect(refusal("glob", { pattern: "../*" })).toContain("must not contain ..");
    expect(refusal("glob", { pattern: "/" })).toContain("names nothing");
    expect(refusal("glob", { pattern: "[z-a]" })).toContain("is not a pattern");
    expect(refusal("glob", { pattern: "{a,b}".repeat(10) })).toContain("more than 100 alternatives");
  });
});

describe("grep", () => {
  it("shows matching lines with path and number, in the order of paths", () => {
    put("b.txt", "x\nneedle two\n");
    put("a/c.txt", "needle one\r\n");
    expect(said("grep", { pattern: "needle \\w+" })).toBe("a/c.txt:1:needle one\nb.txt:2:needle two");
    expect(said("grep", { pattern: "^x$", path: "b.txt" })).toBe("b.txt:1:x");
    expect(said("grep", { pattern: "(?i)NEEDLE TWO" })).toBe("b.txt:2:needle two");
  });

  it("matches within one line, whatever the pattern could reach", () => {
    put("a.txt", "foo\nbar\nfoo bar\n");
    expect(said("grep", { pattern: "foo\\s+bar" })).toBe("a.txt:3:foo bar");
    expect(said("grep", { pattern: "foo[^z]*bar" })).toBe("a.txt:3:foo bar");
    expect(said("grep", { pattern: "foo(?!\\s)" })).toBe("a.txt:1:foo");
    expect(said("grep", { pattern: "(?<!\\s)bar" })).toBe("a.txt:2:bar");
    expect(said("grep", { pattern: "^$" })).toBe("No match in 1 file.");
  });

  it("takes a literal pattern as it is", () => {
    put("a.txt", "a.b(c\naxb(c\n");
    expect(said("grep", { pattern: "a.b(c", literal: true })).toBe("a.txt:1:a.b(c");
  });

  it("passes over hidden directories and binary files, and says so of the latter", () => {
    put(".git/x", "needle");
    put("bin", Buffer.from("needle\0"));
    put(".env", "needle=1");
    expect(said("grep", { pattern: "needle" })).toBe(".env:1:needle=1\n[1 binary file skipped]");
    expect(said("grep", { pattern: "needle", path: ".git" })).toBe(".git/x:1:needle");
  });

  it("includes and excludes by name or by path", () => {
    for (const path of ["a.ts", "a.js", "src/b.ts", "node_modules/c.ts"]) put(path, "needle");
    expect(said("grep", { pattern: "needle", include: "*.ts", exclude: "node_modules" })).toBe(
      "a.ts:1:needle\nsrc/b.ts:1:needle",
    );
    expect(said("grep", { pattern: "needle", include: "src/**/*.{ts,js}" })).toBe("src/b.ts:1:needle");
    expect(refusal("grep", { pattern: "needle", include: "../*" })).toContain("must not contain ..");
  });

  it("shows lines around matches, joins those that touch and parts the others", () => {
    put("a.txt", "1\nx2\n3\nx4\n5\n6\n7\n8\nx9\n");
    expect(said("grep", { pattern: "x", context_lines: 1 })).toBe(
      "a.txt-1-1\na.txt:2:x2\na.txt-3-3\na.txt:4:x4\na.txt-5-5\n--\na.txt-8-8\na.txt:9:x9",
    );
    put("b.txt", "x");
    expect(said("grep", { pattern: "x", context_lines: 1 }).split("\n").slice(-2)).toEqual(["--", "b.txt:1:x"]);
  });

  it("cuts long lines, shows at most so many matches and counts all", () => {
    put("a.txt", `x${"y".repeat(1000)}\n`);
    put("b.txt", "x\n".repeat(500));
    const lines = said("grep", { pattern: "x" }).split("\n");
    expect(lines[0]).toBe(`a.txt:1:x${"y".repeat(499)}... [1001 characters]`);
    expect(lines).toHaveLength(101);
    expect(lines.at(-1)).toBe("[100 of 501 matches in 2 files shown]");
  });

  it("finds matches and their lines in files that are larger than its window", () => {
    put("large", `${"filler line\n".repeat(500_000)}needle\n${"filler line\n".repeat(500_000)}needle`);
    expect(said("grep", { pattern: "needle" })).toBe("large:500001:needle\nlarge:1000002:needle");
  });

  it("refuses what is no regular expression, and classes that it does not know", () => {
    expect(refusal("grep", { pattern: "a(" })).toContain("Set literal to search for the text as it is.");
    expect(refusal("grep", { pattern: "[[:space:]]" })).toContain("use \\s");
    expect(refusal("grep", { pattern: "x", path: "nowhere" })).toContain("nothing is there");
  });
});
