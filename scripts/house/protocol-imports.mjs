import { isTest } from "./sources.mjs";

/** What stands on the library alone: the command line and the agents, as packages or as rooms of the client. */
const ON_THE_LIBRARY = /^packages\/(cli|agents|client\/src\/(cli|environment|provider|mcp))\//;

/** Imports of generated code by what should know the library only. */
export function protocolImports(sources) {
  return sources
    .filter(({ file }) => ON_THE_LIBRARY.test(file) && !isTest(file))
    .flatMap((source) =>
      source
        .imports()
        .filter((specifier) => /^@turnbox\/protocol(\/|$)/.test(specifier))
        .map((specifier) => ({ at: source.file, what: specifier })),
    );
}
