/**
 * Which file may import which: `main -> compose -> rooms in their order`, adapters only from `compose*.ts`, the protocol only at
 * the edges. the packages and their rooms stand in `rooms.mjs`. Everything here is about paths, so it needs no file to be judged.
 */
import { judgeRooms, ROOMS } from "./rooms.mjs";

/** Packages from outside that only those know which speak the protocol; what is built on the library does not. */
const OF_THE_PROTOCOL = /^@(connectrpc|bufbuild)\//;
const ON_THE_LIBRARY = ["agents", "cli"];

const isTest = (file) => /\.(test|suite)\.ts$/.test(file);

/** A path of the repository taken apart: package, path and room (first folder) below src, adapter; undefined outside. */
export function locate(file) {
  const parts = /^packages\/([^/]+)\/src\/(.+)$/.exec(file);
  if (parts === null) return undefined;
  const [, owner, inner] = parts;
  const [room, folder] = inner.split("/").slice(0, -1);
  const isAdapter = ROOMS[owner]?.adapters?.[room]?.(folder) === true;
  const adapter = folder === undefined ? room : `${room}/${folder}`;
  return { owner, inner, room, adapter: isAdapter ? adapter : undefined };
}

/** What an adapter can be told is declared beside it and read where the configuration is. */
const isSettingOf = (source, target) => source.inner === "config.ts" && target.inner.endsWith("-settings.ts");

const LAYERS = ["main", "compose", "room"];

const layerOf = ({ owner, inner }) => {
  if (ROOMS[owner]?.beside !== "above") return "room";
  if (inner === "main.ts" || inner === "serve.ts") return "main";
  return /^compose(-[a-z]+)*\.ts$/.test(inner) ? "compose" : "room";
};

function judgeAdapter(source, { from, target }) {
  if (target.adapter === undefined || source.adapter === target.adapter) return undefined;
  if (layerOf(source) === "compose" || isSettingOf(source, target)) return undefined;
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
  if (target !== owner && ROOMS[owner]?.uses.includes(target) !== true) return `${owner} never imports ${target}`;
  const isEdge = ROOMS[owner]?.edges?.(from.replace(/^packages\/[^/]+\/src\//, "")) === true;
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
