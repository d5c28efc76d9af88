/** `2.16.0` is what we build and test with; whoever installs the library may have a later one of the same kind. */
const compatible = (version) => (/^\d/.test(version) ? `^${version}` : version);

/** What the command line loads for traces, where it is there. */
export const TRACE_KIT = ["@opentelemetry/api", "@opentelemetry/sdk-node"];

/** Our own packages are released together, and share more than what they promise to others. */
const versionOf = (name, { version, dependencies }) =>
  dependencies[name].startsWith("workspace:") ? version : compatible(dependencies[name]);

const common = ({ name, version, description, keywords, license, type, engines }) => ({
  name,
  version,
  description,
  keywords,
  license,
  type,
  engines,
});

/**
 * The manifest of a published library, which follows from that of the workspace. Its dependencies are the packages that it
 * `imports`; everything else is bundled.
 */
export function libraryManifest({ manifest, entries, imports }) {
  const names = [...new Set(imports)].sort();
  const unnamed = names.filter((name) => manifest.dependencies[name] === undefined);
  if (unnamed.length > 0)
    throw new Error(`${manifest.name} imports ${unnamed.join(", ")}, which its package.json does not name`);
  const exports = Object.keys(entries).map((entry) => [
    entry === "index" ? "." : `./${entry}`,
    { types: `./lib/${entry}.d.ts`, default: `./lib/${entry}.js` },
  ]);
  return {
    ...common(manifest),
    sideEffects: false,
    files: ["lib"],
    exports: { ...Object.fromEntries(exports), "./package.json": "./package.json" },
    dependencies: Object.fromEntries(names.map((name) => [name, versionOf(name, manifest)])),
    publishConfig: { access: "public" },
  };
}

/** The manifest of the published command line, which holds everything that it needs in itself. */
export function programManifest({ manifest, rpc }) {
  return {
    ...common(manifest),
    files: ["bin", "bundle", "shell", "THIRD-PARTY-NOTICES.txt"],
    bin: manifest.bin,
    exports: { "./package.json": "./package.json" },
    peerDependencies: Object.fromEntries(TRACE_KIT.map((name) => [name, compatible(rpc.dependencies[name])])),
    peerDependenciesMeta: Object.fromEntries(TRACE_KIT.map((kit) => [kit, { optional: true }])),
    publishConfig: { access: "public" },
  };
}
