/**
 * Which file may import which: `main -> compose -> rpc -> nouns -> ports`, adapters only from `compose.ts` and what is split off it, the protocol
 * only at the edges. Everything here is about paths, so that it can be judged and tested without any file.
 */

const anyBut =
  (...shared) =>
  (folder) =>
    !shared.includes(folder);
const only =
  (...adapters) =>
  (folder) =>
    adapters.includes(folder);

/** Nouns that hold a port, and which folders below them are adapters. A new folder is one until it is named as shared. */
const ADAPTERS = {
  "sandbox-host": { storage: anyBut(), runtime: anyBut("execution"), network: only("netns", "fake", "none") },
  orchestrator: { instance: anyBut(), store: anyBut(), control: only("node", "fleet", "direct", "cloud") },
};

/** Nouns that a port and its adapters serve, and so never know. */
const ABOVE_PORTS = {
  "sandbox-host": { storage: ["session", "turn", "tool", "process"], runtime: ["session", "turn", "tool", "process"] },
  orchestrator: { instance: ["control"], store: ["control"] },
};

const MAY_DEPEND_ON = {
  protocol: [],
  core: ["protocol"],
  client: ["core", "protocol"],
  agents: ["client"],
  // What starts services on this machine uses core; everything else goes through the library.
  cli: ["agents", "client", "core"],
  "sandbox-host": ["core", "protocol"],
  orchestrator: ["core", "protocol"],
};

/** Places, below packages/, that convert between the protocol and the domain. */
const PROTOCOL_EDGES = [
  /^protocol\//,
  /^client\//,
  /^core\/src\/server\//,
  /^core\/src\/line\/[^/]*\.test\.ts$/,
  /^core\/src\/error\/wire[^/]*\.ts$/,
  /^sandbox-host\/src\/rpc\//,
  /^orchestrator\/src\/rpc\//,
  /^orchestrator\/src\/control\/node\//,
];

/** Packages from outside that only those know which speak the protocol; what is built on the library does not. */
const OF_THE_PROTOCOL = /^@(connectrpc|bufbuild)\//;
const ON_THE_LIBRARY = ["agents", "cli"];

const isTest = (file) => /\.(test|suite)\.ts$/.test(file);

/** A path of the repository taken apart: package, noun (first folder below src), adapter folder, or undefined outside. */
export function locate(file) {
  const parts = /^packages\/([^/]+)\/src\/(.+)$/.exec(file);
  if (parts === null) return undefined;
  const [, owner, inner] = parts;
  const folders = inner.split("/").slice(0, -1);
  const isAdapter = folders.length > 1 && ADAPTERS[owner]?.[folders[0]]?.(folders[1]) === true;
  return { owner, inner, noun: folders[0], adapter: isAdapter ? `${folders[0]}/${folders[1]}` : undefined };
}

const layerOf = ({ owner, inner, noun }) => {
  if (owner !== "sandbox-host" && owner !== "orchestrator") return "noun";
  if (inner === "main.ts" || inner === "serve.ts") return "main";
  if (inner === "compose.ts" || inner === "compose-backends.ts") return "compose";
  return noun === "rpc" ? "rpc" : "noun";
};

const LAYERS = ["main", "compose", "rpc", "noun"];

function judgeAdapter(source, { from, target }) {
  if (target.adapter === undefined || source.adapter === target.adapter) return undefined;
  if (layerOf(source) === "compose") return undefined;
  const forTests = isTest(from) && (target.adapter.endsWith("/fake") || source.noun === target.noun);
  return forTests ? undefined : `the adapter ${target.adapter} is named only in compose.ts`;
}

function judgeLayer(source, target) {
  const [from, to] = [layerOf(source), layerOf(target)];
  if (LAYERS.indexOf(to) >= LAYERS.indexOf(from)) return undefined;
  return `${from === "noun" ? "a noun" : from} never imports ${to}: main -> compose -> rpc -> nouns -> ports`;
}

function judgePort(source, target) {
  const above = ABOVE_PORTS[source.owner]?.[source.noun] ?? [];
  if (!above.includes(target.noun)) return undefined;
  return `the port ${source.noun} never imports the noun ${target.noun} that uses it`;
}

/** What is wrong with a file importing another file of the repository, or undefined. Paths are relative to its root. */
export function judgeFileImport(from, to) {
  const [source, target] = [locate(from), locate(to)];
  if (source === undefined) return undefined;
  if (target === undefined || target.owner !== source.owner) {
    return to.startsWith("packages/") || to.startsWith("test/") || to.startsWith("scripts/")
      ? "a package imports another one by its name and nothing outside of packages"
      : undefined;
  }
  const byAdapter = judgeAdapter(source, { from, target });
  if (byAdapter !== undefined) return byAdapter;
  if (isTest(from)) return undefined;
  return judgeLayer(source, target) ?? judgePort(source, target);
}

function judgeEntry(from, { target, inner }) {
  if (/^(src|dist)(\/|$)/.test(inner)) return "a package is imported by what it exports, not by its files";
  return target === "client" && inner === "fake" && !isTest(from) ? "services in memory are for tests" : undefined;
}

/** What is wrong with a file importing one of our packages by name, or undefined. */
export function judgePackageImport(from, name) {
  const [, target, inner = ""] = /^@turnbox\/([^/]+)(?:\/(.*))?$/.exec(name);
  const byEntry = judgeEntry(from, { target, inner });
  if (byEntry !== undefined) return byEntry;
  const owner = /^packages\/([^/]+)\//.exec(from)?.[1];
  if (owner === undefined) return undefined;
  if (target !== owner && MAY_DEPEND_ON[owner]?.includes(target) !== true) return `${owner} never imports ${target}`;
  const isEdge = PROTOCOL_EDGES.some((edge) => edge.test(from.slice("packages/".length)));
  return target === "protocol" && !isEdge
    ? "only rpc/, the host client and the client package import the protocol"
    : undefined;
}

/** What is wrong with a file importing a package of others by name, or undefined. */
export function judgeForeignImport(from, name) {
  const owner = /^packages\/([^/]+)\//.exec(from)?.[1];
  if (!ON_THE_LIBRARY.includes(owner) || !OF_THE_PROTOCOL.test(name)) return undefined;
  return `${owner} is built on @turnbox/client, which alone speaks the protocol`;
}
