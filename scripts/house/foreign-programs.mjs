import ts from "typescript";
import { isTest, lineOf, packageOf } from "./sources.mjs";

/** A shell script of fewer lines is a command. */
const FEWEST_LINES = 5;

/** What is found in programs of a language and hardly ever in other text; how many of them make it one, and from how many lines on. */
const LANGUAGES = [
  {
    name: "Perl",
    fewestLines: 1,
    fewestMarks: 1,
    marks: [/\bmy ?[$@%(]/, /\bsysopen\b/, /\bsyscall ?\(/, /^use strict;/m, /@ARGV\b|\$ARGV\[/],
  },
  {
    name: "awk",
    fewestLines: FEWEST_LINES,
    fewestMarks: 2,
    marks: [/^\s*(BEGIN|END) \{/m, /\$0\b/, /\bsubstr\(/, /\bprintf? /, /\{ *next\b|\bnext$/m],
  },
  {
    name: "Python",
    fewestLines: FEWEST_LINES,
    fewestMarks: 2,
    marks: [/^import \w+/m, /^from \w+ import /m, /^\s*def \w+\(.*\):$/m, /^\s*(if|for|while|try|with) ?.*:$/m],
  },
  {
    name: "shell",
    fewestLines: FEWEST_LINES,
    fewestMarks: 2,
    marks: [
      /^#!.*sh$/m,
      /\b(fi|done|esac)\b/,
      /^\s*(if|while|until) (\[|!|read|kill|test)/m,
      /\bfor \w+ in /,
      /"?\$(@|[0-9]|\{[0-9a-z_]+)/,
      /^\s*(local|trap|shift|export|exec|eval|set -|complete -)/m,
      /\$\(\w+ /,
    ],
  },
];

/** The language of a program, or undefined for any other text. */
export function languageOf(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "").length;
  return LANGUAGES.find(
    ({ fewestLines, fewestMarks, marks }) =>
      lines >= fewestLines && marks.filter((mark) => mark.test(text)).length >= fewestMarks,
  )?.name;
}

/** The text of a literal as a program sees it, with nothing in the places of its substitutions. */
function textOf(node) {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node))
    return [node.head, ...node.templateSpans.map(({ literal }) => literal)].map(({ text }) => text).join("0");
  if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken) {
    const [left, right] = [textOf(node.left), textOf(node.right)];
    return left === undefined || right === undefined ? undefined : left + right;
  }
  if (isJoined(node)) return node.expression.expression.elements.map((element) => textOf(element) ?? "0").join("\n");
  return undefined;
}

/** `[...].join("\n")` and the like: lines of one text. */
const isJoined = (node) =>
  ts.isCallExpression(node) &&
  ts.isPropertyAccessExpression(node.expression) &&
  node.expression.name.text === "join" &&
  ts.isArrayLiteralExpression(node.expression.expression) &&
  node.arguments.length === 1 &&
  ts.isStringLiteralLike(node.arguments[0]) &&
  /^(\n| |; ?| && )$/.test(node.arguments[0].text);

/** Programs of other languages inside strings of the product: no editor, no linter and no coverage sees them. SQL and tables of rules are no programs. */
export function foreignPrograms(sources) {
  const found = [];
  for (const source of sources) {
    if (packageOf(source.file) === undefined || isTest(source.file)) continue;
    const visit = (node) => {
      const text = textOf(node);
      const language = text === undefined ? undefined : languageOf(text);
      if (language === undefined) ts.forEachChild(node, visit);
      else
        found.push({
          at: `${source.file}:${lineOf(source, node)}`,
          what: `${language}, ${text.trim().split("\n").length} lines`,
        });
    };
    visit(source.ast());
  }
  return found;
}
