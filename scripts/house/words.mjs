import path from "node:path";
import ts from "typescript";
import { holdsTests, isTest, lineOf, packageOf, walk } from "./sources.mjs";

/** The words of an identifier or a file name, in lower case: `createHttp2Line` has create, http2 and line. */
export const wordsOf = (name) =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== "")
    .map((word) => word.toLowerCase());

const DECLARATIONS = [
  ts.isVariableDeclaration,
  ts.isParameter,
  ts.isBindingElement,
  ts.isFunctionDeclaration,
  ts.isFunctionExpression,
  ts.isClassDeclaration,
  ts.isInterfaceDeclaration,
  ts.isTypeAliasDeclaration,
  ts.isPropertyDeclaration,
  ts.isPropertySignature,
  ts.isPropertyAssignment,
  ts.isMethodDeclaration,
  ts.isMethodSignature,
  ts.isAccessor,
];

const isDeclared = (node) => node.name !== undefined && DECLARATIONS.some((isOne) => isOne(node));

/** Names that a file of the product gives to something, each once, and its own name and those of its folders below `src`. */
export function listIdentifiers(sources) {
  const found = [];
  const folders = new Set();
  for (const source of sources) {
    if (packageOf(source.file) === undefined || isTest(source.file)) continue;
    const seen = new Set();
    const add = (at, text) => {
      if (!seen.has(text)) found.push({ at, text });
      seen.add(text);
    };
    const [, owner, inner] = /^(packages\/[^/]+\/src)\/(.*)$/.exec(source.file) ?? [];
    const parts = inner.split("/");
    for (let depth = 1; depth < parts.length; depth += 1) {
      const folder = `${owner}/${parts.slice(0, depth).join("/")}`;
      if (!folders.has(folder)) found.push({ at: folder, text: path.posix.basename(folder) });
      folders.add(folder);
    }
    add(source.file, path.posix.basename(source.file, ".ts"));
    walk(source, (node) => {
      if (isDeclared(node) && (ts.isIdentifier(node.name) || ts.isPrivateIdentifier(node.name)))
        add(`${source.file}:${lineOf(source, node)}`, node.name.text);
    });
  }
  return found;
}

const LEVELS = new Set(["trace", "debug", "info", "warn", "error", "fatal"]);

/** The calls of a log in the product with their message: its text, or undefined if it is no constant. */
export function listLogMessages(sources) {
  const found = [];
  for (const source of sources) {
    if (packageOf(source.file) === undefined || isTest(source.file)) continue;
    walk(source, (node) => {
      if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return;
      const { name, expression } = node.expression;
      if (!LEVELS.has(name.text) || !/(^|\.|#)(log|logger)$/i.test(expression.getText())) return;
      const last = node.arguments.at(-1);
      if (last === undefined || ts.isObjectLiteralExpression(last)) return;
      const text = ts.isStringLiteralLike(last) ? last.text : undefined;
      found.push({ at: `${source.file}:${lineOf(source, node)}`, text, source: last.getText() });
    });
  }
  return found;
}

const TESTS = /^(describe|it|test)(\.(each|only|skip|failing|concurrent))*$/;

/** What a test is named with: `it` of `it("...")`, `it.each` of `it.each([...])("...")` and of its tagged form. */
function calleeOf({ expression }) {
  if (ts.isCallExpression(expression)) return expression.expression;
  return ts.isTaggedTemplateExpression(expression) ? expression.tag : expression;
}

/** The names of tests and of their groups; a part that changes is as it is written. */
export function listTestNames(sources) {
  const found = [];
  for (const source of sources.filter(({ file }) => holdsTests(file))) {
    walk(source, (node) => {
      if (!ts.isCallExpression(node) || !TESTS.test(calleeOf(node).getText())) return;
      const [name] = node.arguments;
      const at = `${source.file}:${lineOf(source, node)}`;
      if (name !== undefined && ts.isStringLiteralLike(name)) found.push({ at, text: name.text });
      if (name !== undefined && ts.isTemplateExpression(name)) found.push({ at, text: name.getText().slice(1, -1) });
    });
  }
  return found;
}
