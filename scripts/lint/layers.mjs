/**
 * Which file may import which: `main -> compose -> rooms in their order` (`rooms.mjs`), adapters only from `compose.ts` and what
 * is split off it, the protocol only at the edges. Everything here is about paths, so it needs no file to be judged and tested.
 */
import { judgeRooms } from "./rooms.mjs";

const anyBut =
  (...shared) =>
  (folder) =>
    !shared.includes(folder);
const only =
  (...adapters) =>
  (folder) =>
    adapters.includes(folder);

/** Rooms that hold a port, and which folders below them are adapters. A new folder is one until it is named as shared. */
const ADAPTERS = {
  "sandbox-host": { storage: anyBut(), runtime: anyBut("execution"), network: only("netns", "fake", "none") },
  orchestrator: { instance: anyBut(), store: anyBut(), control: only("node", "fleet", "direct", "cloud") },
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
  /^orchestrator\/src\/control\/node\//,
];

const isTest = (file) => /\.(test|suite)\.ts$/.test(file);

/** A path of the repository taken apart: package, room (first folder below src), adapter folder, or undefined outside. */
export function locate(file) {
  const parts = /^packages\/([^/]+)\/src\/(.+)$/.exec(file);
  if (parts === null) return undefined;
  const [, owner, inner] = parts;
  const folders = inner.split("/").slice(0, -1);
  const isAdapter = folders.length > 1 && ADAPTERS[owner]?.[folders[0]]?.(folders[1]) === true;
  return { owner, inner, room: folders[0], adapter: isAdapter ? `${folders[0]}/${folders[1]}` : undefined };
}

const LAYERS = ["main", "compose", "room"];

const layerOf = ({ owner, inner }) => {
  if (owner !== "sandbox-host" && owner !== "orchestrator") return "room";
  if (inner === "main.ts" || inner === "serve.ts") return "main";
  return inner === "compose.ts" || inner === "compose-backends.ts" ? "compose" : "room";
};

function judgeAdapter(source, { from, target }) {
  if (target.adapter === undefined || source.adapter === target.adapter) return undefined;
  if (layerOf(source) === "compose") return undefined;
  const forTests = isTest(from) && (target.adapter.endsWith("/fake") || source.room === target.room);
  return forTests ? undefined : `the adapter ${target.adapter} is named only in compose.ts`;
}

function judgeLayer(source, target) {
  const [from, to] = [layerOf(source), layerOf(target)];
  if (LAYERS.indexOf(to) >= LAYERS.indexOf(from)) return undefined;
  return `${from === "room" ? "a room" : from} never imports ${to}: main -> compose -> rooms in their order`;
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
  return judgeLayer(source, target) ?? judgeRooms(source.owner, source.room, target.room);
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
