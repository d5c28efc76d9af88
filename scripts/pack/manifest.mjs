/** `2.16.0` is what we build and test with; whoever installs the library may have a later one of the same kind. */
const compatible = (version) => (/^\d/.test(version) ? `^${version}` : version);

const pick = (from, names) => Object.fromEntries(names.map((name) => [name, compatible(from[name])]));

/** What the command line loads for traces, where it is there. */
export const TRACE_KIT = ["@opentelemetry/api", "@opentelemetry/sdk-node"];

/**
 * The manifest of the published package, which follows from those of the workspace. Its dependencies are the packages
 * that the library `imports`; everything else is bundled.
 */
export function publishedManifest({ client, core, entries, imports }) {
  const names = [...new Set(imports)].sort();
  const unnamed = names.filter((name) => client.dependencies[name] === undefined);
  if (unnamed.length > 0)
    throw new Error(`the library imports ${unnamed.join(", ")}, which its package.json does not name`);
  const { name, version, description, keywords, license, type, engines, bin } = client;
  const exports = Object.keys(entries).map((entry) => [
    entry === "index" ? "." : `./${entry}`,
    { types: `./lib/${entry}.d.ts`, default: `./lib/${entry}.js` },
  ]);
  return {
    name,
    version,
    description,
    keywords,
    license,
    type,
    engines,
    sideEffects: ["./bin/*", "./bundle/**"],
    files: ["bin", "bundle", "lib", "THIRD-PARTY-NOTICES.txt"],
    bin,
    exports: { ...Object.fromEntries(exports), "./package.json": "./package.json" },
    dependencies: pick(client.dependencies, names),
    peerDependencies: pick(core.dependencies, TRACE_KIT),
    peerDependenciesMeta: Object.fromEntries(TRACE_KIT.map((kit) => [kit, { optional: true }])),
    publishConfig: { access: "public" },
  };
}
