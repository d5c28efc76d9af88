import { type Call, LruMap } from "@turnbox/core";
import { DataKey } from "../../key-wrap/data-key.ts";
import type { KeyOwner, KeyWrap } from "../../key-wrap/key-wrap.ts";
import { damaged } from "../damage.ts";
import { FORMAT } from "../format.ts";
import type { KeyEntry, ManifestHead } from "./manifest.ts";
import { nameOf } from "./owner.ts";

const MAX_CACHED = 256;

/** Makes data keys, and opens those of manifests. It keeps a bounded number of them open, so that a key service is asked less. */
export class DataKeys implements Disposable {
  readonly #wrap: KeyWrap;
  /** By the whole entry: what was opened for one owner opens nothing for another. */
  readonly #open = new LruMap<string, DataKey>(MAX_CACHED);

  constructor(wrap: KeyWrap) {
    this.#wrap = wrap;
  }

  /** A new data key, as a manifest holds it. */
  async create(owner: KeyOwner, call: Call): Promise<KeyEntry> {
    const key = DataKey.random();
    const { keyId, bytes } = await this.#wrap.wrap(key, { ...pick(owner), format: FORMAT }, call);
    const entry = { id: key.id, owner: pick(owner), wrappedBy: keyId, wrapped: Buffer.from(bytes).toString("base64") };
    this.#open.set(cacheKey(entry), key);
    return entry;
  }

  /** The data key of an entry. It stays the property of this object: callers do not dispose of it. */
  async open(entry: KeyEntry, call: Call): Promise<DataKey> {
    const known = this.#open.get(cacheKey(entry));
    if (known !== undefined) return known;
    const wrapped = { keyId: entry.wrappedBy, bytes: Buffer.from(entry.wrapped, "base64") };
    const key = await this.#wrap.unwrap(wrapped, { ...pick(entry.owner), format: FORMAT }, call);
    if (key.id !== entry.id)
      throw damaged(`keys: the data key of ${nameOf(entry.owner)} is ${key.id}, and not ${entry.id}`, {
        fault: "wrong field",
        field: "keys",
      });
    this.#open.set(cacheKey(entry), key);
    return key;
  }

  /** The data key of this id, which the manifest holds. */
  async openOf({ keys, owner }: Pick<ManifestHead, "keys" | "owner">, id: string, call: Call): Promise<DataKey> {
    const entry = keys.find((one) => one.id === id);
    if (entry !== undefined) return await this.open(entry, call);
    throw damaged(`keys: the manifest of ${nameOf(owner)} holds no data key ${id}`, {
      fault: "wrong field",
      field: "keys",
    });
  }

  /** Fills all keys that are open with zeros. */
  [Symbol.dispose](): void {
    for (const [, key] of this.#open.entries()) key[Symbol.dispose]();
    this.#open.clear();
  }
}

const pick = ({ tenant, kind, id }: KeyOwner): KeyOwner => ({ tenant, kind, id });

const cacheKey = ({ id, owner, wrappedBy, wrapped }: KeyEntry): string =>
  JSON.stringify([id, owner.tenant, owner.kind, owner.id, wrappedBy, wrapped]);
