import path from "node:path";
import { root } from "../bootstrap/layout.mjs";
import { judgeFileImport, judgeForeignImport, judgePackageImport } from "./layers.mjs";

const relativeToRoot = (file) => path.relative(root, file).split(path.sep).join("/");

/**
 * The eslint rule over `layers.mjs`. Unlike `no-restricted-imports` it looks at the file that an import means, not at how
 * the path to it is written, and at `import()` and type imports too.
 */
export const layersRule = {
  meta: { type: "problem", schema: [], messages: { forbidden: "{{reason}}" } },
  create(context) {
    const from = relativeToRoot(context.filename);
    const judge = (specifier) => {
      if (specifier.startsWith(".")) {
        return judgeFileImport(from, relativeToRoot(path.resolve(path.dirname(context.filename), specifier)));
      }
      return specifier.startsWith("@turnbox/")
        ? judgePackageImport(from, specifier)
        : judgeForeignImport(from, specifier);
    };
    const check = (node) => {
      const source = node.source ?? node.argument?.literal;
      if (typeof source?.value !== "string") return;
      const reason = judge(source.value);
      if (reason !== undefined) context.report({ node: source, messageId: "forbidden", data: { reason } });
    };
    return {
      ImportDeclaration: check,
      ImportExpression: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
      TSImportType: check,
    };
  },
};
