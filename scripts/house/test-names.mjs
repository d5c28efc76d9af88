import path from "node:path";
import { isTest, packageOf } from "./sources.mjs";

/** `listen.ts` of `listen.test.ts`, `listen.close.test.ts` and `listen.contract.test.ts`. */
const subjectOf = (file) => {
  const [stem] = path.posix.basename(file).split(".");
  return `${path.posix.dirname(file)}/${stem}.ts`;
};

/** Tests of the packages without a file of the product beside them that has their name. Words after it say which aspect is tested. */
export function unnamedTests(sources) {
  const product = new Set(
    sources.map(({ file }) => file).filter((file) => /(^|\/)(fake|testing)\//.test(file) || !isTest(file)),
  );
  return sources
    .filter(({ file }) => file.endsWith(".test.ts") && packageOf(file) !== undefined && !product.has(subjectOf(file)))
    .map(({ file }) => ({ at: file, what: `there is no ${path.posix.basename(subjectOf(file))} beside it` }));
}
