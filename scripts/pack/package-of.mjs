import { isBuiltin } from "node:module";

/** The package that a specifier names (`@a/b/c` is of `@a/b`), or undefined for paths and node's own modules. */
export function packageOf(specifier) {
  if (/^[./]/.test(specifier) || isBuiltin(specifier)) return undefined;
  return specifier
    .split("/")
    .slice(0, specifier.startsWith("@") ? 2 : 1)
    .join("/");
}

export const isOurs = (specifier) => specifier.startsWith("@turnbox/");
