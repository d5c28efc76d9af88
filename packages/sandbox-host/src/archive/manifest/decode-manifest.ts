import { wrongField } from "../decode.ts";
import { sandboxBody, templateBody } from "./body-decoder.ts";
import type { Manifest, ManifestHead, SandboxManifest } from "./manifest.ts";
import { isSandboxManifest, objectsOf } from "./manifest.ts";
import { isSameOwner, sandboxOf, templateOf } from "./owner.ts";

/** A manifest of its head and the JSON of its body. Fails with `ARCHIVE_DAMAGED` naming the first field that is wrong. */
export function decodeManifest({ owner, revision, epoch, key, keys }: ManifestHead, body: unknown): Manifest {
  const head = { revision, epoch, key, keys };
  const manifest: Manifest =
    owner.kind === "sandbox"
      ? { ...head, owner: sandboxOf(owner.tenant, owner.id), ...sandboxBody.decode(body, "") }
      : { ...head, owner: templateOf(owner.tenant, owner.id), ...templateBody.decode(body, "") };
  checkKeys(manifest);
  if (isSandboxManifest(manifest)) checkSnapshots(manifest);
  else if (manifest.base.digest !== owner.id) throw wrongField("base.digest", "is not the digest of this template");
  return manifest;
}

/** What of a manifest is in its body. */
export function bodyOf(manifest: Manifest): object {
  const { owner: _owner, revision: _revision, epoch: _epoch, key: _key, keys: _keys, ...body } = manifest;
  return body;
}

function checkKeys(manifest: Manifest): void {
  const known = new Set(manifest.keys.map(({ id }) => id));
  if (known.size < manifest.keys.length) throw wrongField("keys", "has a key twice");
  const own = manifest.keys.find(({ id }) => id === manifest.key);
  if (own === undefined || !isSameOwner(own.owner, manifest.owner))
    throw wrongField("key", "is not a key of the owner");
  for (const { id, key } of objectsOf(manifest))
    if (!known.has(key)) throw wrongField("keys", `has not ${key}, which object ${id} needs`);
}

function checkSnapshots({ snapshots, continuesFrom, archivedTurn, session }: SandboxManifest): void {
  const ids = new Set<string>();
  for (const [index, { id }] of snapshots.entries()) {
    if (ids.has(id)) throw wrongField(`snapshots[${index}].id`, "is used twice");
    ids.add(id);
  }
  if (continuesFrom !== null && !ids.has(continuesFrom))
    throw wrongField("continuesFrom", "is not one of the snapshots");
  if (archivedTurn > session.turnCounter) throw wrongField("archivedTurn", "is higher than session.turnCounter");
}
