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
  orchestrator: { provisioner: anyBut(), store: anyBut(), control: anyBut() },
};

/** Nouns that are one adapter as a whole, of a port in another noun. */
const ADAPTER_NOUNS = { orchestrator: ["host"] };

/** Nouns that a port and its adapters serve, and so never know. */
const ABOVE_PORTS = {
  "sandbox-host": { storage: ["session", "turn", "tool", "process"], runtime: ["session", "turn", "tool", "process"] },
  orchestrator: {
    control: ["fleet", "host", "provisioner", "store"],
    provisioner: ["control", "fleet", "host", "store"],
    store: ["control", "fleet", "host", "provisioner"],
    host: ["fleet", "provisioner", "store"],
  },
};

const MAY_DEPEND_ON = {
  protocol: [],
  core: ["protocol"],
  client: ["core", "protocol"],
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
  /^orchestrator\/src\/host\//,
];

const isTest = (file) => /\.(test|suite)\.ts$/.test(file);

/** A path of the repository taken apart: package, noun (first folder below src), adapter folder, or undefined outside. */
export function locate(file) {
  const parts = /^packages\/([^/]+)\/src\/(.+)$/.exec(file);
  if (parts === null) return undefined;
  const [, owner, inner] = parts;
  const folders = inner.split("/").slice(0, -1);
  return { owner, inner, noun: folders[0], adapter: adapterOf(owner, folders) };
}

function adapterOf(owner, [noun, folder]) {
  if (ADAPTER_NOUNS[owner]?.includes(noun)) return noun;
  return folder !== undefined && ADAPTERS[owner]?.[noun]?.(folder) === true ? `${noun}/${folder}` : undefined;
}

/** What an adapter can be told is declared beside it and read where the configuration is. */
const isSettingOf = (source, target) => source.inner === "config.ts" && target.inner.endsWith("-settings.ts");

const layerOf = ({ owner, inner, noun }) => {
  if (owner !== "sandbox-host" && owner !== "orchestrator") return "noun";
  if (inner === "main.ts" || inner === "serve.ts") return "main";
  if (/^compose(-[a-z]+)*\.ts$/.test(inner)) return "compose";
  return noun === "rpc" ? "rpc" : "noun";
};

const LAYERS = ["main", "compose", "rpc", "noun"];

function judgeAdapter(source, { from, target }) {
  if (target.adapter === undefined || source.adapter === target.adapter) return undefined;
  if (layerOf(source) === "compose" || isSettingOf(source, target)) return undefined;
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

/** What is wrong with a file importing one of our packages by name, or undefined. */
export function judgePackageImport(from, name) {
  const [, target, inner = ""] = /^@turnbox\/([^/]+)(?:\/(.*))?$/.exec(name);
  if (/^(src|dist)(\/|$)/.test(inner)) return "a package is imported by what it exports, not by its files";
  const owner = /^packages\/([^/]+)\//.exec(from)?.[1];
  if (owner === undefined) return undefined;
  if (target !== owner && MAY_DEPEND_ON[owner]?.includes(target) !== true) return `${owner} never imports ${target}`;
  const isEdge = PROTOCOL_EDGES.some((edge) => edge.test(from.slice("packages/".length)));
  return target === "protocol" && !isEdge
    ? "only rpc/, the host client and the client package import the protocol"
    : undefined;
}
