import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import ts from "typescript";

const LEFT_OUT = new Set(["node_modules", "dist", "bundle", "gen"]);

/** Not part of the product: tests, contract suites, fakes and what only tests import. */
export const isTest = (file) => /\.(test|suite)\.ts$/.test(file) || /(^|\/)(fake|testing)\//.test(file);

/** Files whose `it(...)` names are test names. */
export const holdsTests = (file) => /\.(test|suite)\.ts$/.test(file);

/** One file, parsed on first use. `file` is relative to the root, with slashes. */
export function createSource(file, text) {
  let ast;
  let imports;
  return {
    file,
    text,
    lines: text.split("\n").length - (text.endsWith("\n") ? 1 : 0),
    ast: () => (ast ??= ts.createSourceFile(file, text, ts.ScriptTarget.ES2023, true)),
    imports() {
      return (imports ??= listImports(this.ast()));
    },
  };
}

/** What a file imports or re-exports, of values and of types, also by `import()`. */
function listImports(ast) {
  const found = [];
  const visit = (node) => {
    const specifier = node.moduleSpecifier ?? (ts.isImportTypeNode(node) ? node.argument.literal : undefined);
    if (specifier !== undefined && ts.isStringLiteralLike(specifier)) found.push(specifier.text);
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
      const [first] = node.arguments;
      if (first !== undefined && ts.isStringLiteralLike(first)) found.push(first.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(ast);
  return found;
}

/** The file that a relative import of `file` means, or undefined if it names a package. */
export function resolveImport(file, specifier) {
  if (!specifier.startsWith(".")) return undefined;
  return path.posix.join(path.posix.dirname(file), specifier).replace(/\.js$/, ".ts");
}

export const packageOf = (file) => /^packages\/([^/]+)\//.exec(file)?.[1];

/** Calls `visit` with each node of a file, parents first. */
export function walk(source, visit) {
  const step = (node) => {
    visit(node);
    ts.forEachChild(node, step);
  };
  step(source.ast());
}

export const lineOf = (source, node) => source.ast().getLineAndCharacterOfPosition(node.getStart()).line + 1;

/** All TypeScript of the packages and of the tests, benchmarks and examples outside of them. */
export function readSources(root) {
  const files = [];
  const look = (folder) => {
    for (const entry of readdirSync(path.join(root, folder), { withFileTypes: true })) {
      const file = `${folder}/${entry.name}`;
      if (entry.isDirectory() && !LEFT_OUT.has(entry.name)) look(file);
      else if (entry.isFile() && file.endsWith(".ts")) files.push(file);
    }
  };
  for (const name of readdirSync(path.join(root, "packages")).sort()) {
    if (existsSync(path.join(root, "packages", name, "src"))) look(`packages/${name}/src`);
  }
  for (const folder of ["test", "bench"]) look(folder);
  return files.sort().map((file) => createSource(file, readFileSync(path.join(root, file), "utf8")));
}
