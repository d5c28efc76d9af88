import { describe, expect, it } from "@jest/globals";
import { contentsOf, tidyMarkdown } from "../../scripts/docs/tidy-markdown.mjs";
import { libraryManifest, programManifest } from "../../scripts/pack/manifest.mjs";
import { packageOf } from "../../scripts/pack/package-of.mjs";
import { entryPoints } from "../../scripts/pack/packages.mjs";
import { placeholderManifest } from "../../scripts/pack/placeholder.mjs";

const client = {
  name: "@turnbox/client",
  version: "1.2.3",
  private: true,
  exports: { ".": { default: "./dist/index.js" }, "./fake": { default: "./dist/fake/index.js" } },
  dependencies: { "@turnbox/core": "workspace:*", connect: "2.2.0", commander: "15.1.0" },
  devDependencies: { mcp: "1.0.0" },
};
const agents = { ...client, name: "@turnbox/agents", dependencies: { "@turnbox/client": "workspace:*", zod: "4.6.7" } };
const entries = { index: "dist/index.js", testing: "dist/testing/index.js" };

describe("the manifest of a published library", () => {
  it("depends on what the library imports, and on nothing else", () => {
    const made = libraryManifest({ manifest: client, entries, imports: ["connect", "connect"] });
    expect(made.dependencies).toEqual({ connect: "^2.2.0" });
    expect(JSON.stringify(made)).not.toMatch(/workspace:|private|devDependencies|dist/);
  });

  it("depends on exactly its own version of our other library", () => {
    const made = libraryManifest({ manifest: agents, entries, imports: ["zod", "@turnbox/client"] });
    expect(made.dependencies).toEqual({ "@turnbox/client": "1.2.3", zod: "^4.6.7" });
  });

  it("names every entry point with its types, but those for the workspace alone", () => {
    const published = entryPoints({ folder: "client", hidden: ["./fake"] }, client.exports);
    expect(published).toEqual({ index: "packages/client/dist/index.js" });
    expect(libraryManifest({ manifest: client, entries, imports: [] }).exports).toEqual({
      ".": { types: "./lib/index.d.ts", default: "./lib/index.js" },
      "./testing": { types: "./lib/testing.d.ts", default: "./lib/testing.js" },
      "./package.json": "./package.json",
    });
  });

  it("is refused if the library imports what its package.json does not name", () => {
    expect(() => libraryManifest({ manifest: client, entries, imports: ["pino"] })).toThrow("imports pino");
  });

  it.each([
    ["@a/b/c", "@a/b"],
    ["zod/v4", "zod"],
    ["node:fs", undefined],
    ["fs/promises", undefined],
    ["./x.js", undefined],
  ])("takes %s for a part of %s", (specifier, name) => {
    expect(packageOf(specifier)).toBe(name);
  });
});

describe("the manifest of the published command line", () => {
  it("depends on nothing, and has traces as something one may have", () => {
    const rpc = {
      dependencies: { "@opentelemetry/api": "1.10.0", "@opentelemetry/sdk-node": "0.301.0", pino: "1.0.0" },
    };
    const manifest = { ...client, name: "turnbox", bin: { turnbox: "./bin/turnbox.mjs" } };
    const made = programManifest({ manifest, rpc });
    expect(made).toMatchObject({ name: "turnbox", version: "1.2.3", bin: manifest.bin });
    expect(Object.keys(made)).not.toContain("dependencies");
    expect(Object.keys(made.peerDependencies)).toEqual(Object.keys(made.peerDependenciesMeta));
  });
});

describe("the package that holds the name of the command line", () => {
  it("has that name, is older than any release, and runs nothing", () => {
    const made = placeholderManifest({ license: "MIT" });
    expect(made).toMatchObject({ name: "turnbox", version: "0.0.0" });
    expect(Object.keys(made)).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/^(bin|scripts|.*ependencies)$/)]),
    );
  });
});

describe("the reference", () => {
  const typedoc = [
    "# x",
    "## Chapter",
    "### Box",
    "#### Extends",
    "",
    "- [`Lid`](#lid-1)",
    "",
    "#### Methods",
    "##### open()",
    "```ts",
    "open(): void;",
    "```",
    "Opens [`Box.it`](#property-it).",
    "###### Returns",
    "`void`",
    "***",
    "### Lid",
    '| <a id="property-it"></a> `it` | `string` |',
    "",
  ].join("\n");

  it("keeps signatures and sentences, links to what has a heading and repeats nothing", () => {
    const tidy = tidyMarkdown(typedoc);
    expect(tidy).toContain("Extends [`Lid`](#lid).");
    expect(tidy).toContain("open(): void;\n```\nOpens `Box.it`.");
    expect(tidy).not.toMatch(/Returns|##### |\*\*\*|<a id/);
    expect(contentsOf(tidy)).toBe("- **[Chapter](#chapter)**: [Box](#box), [Lid](#lid)");
  });
});
