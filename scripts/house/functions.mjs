import ts from "typescript";
import { isTest, lineOf, packageOf, walk } from "./sources.mjs";

const isFunction = (node) =>
  node.body !== undefined &&
  (ts.isFunctionDeclaration(node) ||
    ts.isFunctionExpression(node) ||
    ts.isArrowFunction(node) ||
    ts.isMethodDeclaration(node) ||
    ts.isConstructorDeclaration(node) ||
    ts.isAccessor(node));

function nameOf(node) {
  if (ts.isConstructorDeclaration(node)) return "constructor";
  const named = [node, node.parent].find(({ name }) => name !== undefined && !ts.isBindingPattern(name));
  return named?.name.getText() ?? "(no name)";
}

/** Functions of the product with more lines than `most`, from the first of their head to their last brace. */
export function longFunctions(sources, most) {
  const found = [];
  for (const source of sources) {
    if (packageOf(source.file) === undefined || isTest(source.file)) continue;
    walk(source, (node) => {
      if (!isFunction(node)) return;
      const end = source.ast().getLineAndCharacterOfPosition(node.end).line + 1;
      const lines = end - lineOf(source, node) + 1;
      if (lines > most)
        found.push({ at: `${source.file}:${lineOf(source, node)}`, what: `${nameOf(node)}: ${lines} lines` });
    });
  }
  return found;
}
