import type { Readable } from "node:stream";
import type { Call } from "@turnbox/core";

/**
 * Keeps bytes under keys, apart from the machine, so that they are there when the machine is gone.
 *
 * # Words
 *
 * - A _key_ is a path of one or more segments of letters, digits, `.`, `_` and `-`, joined by `/`; no segment is `.` or `..`.
 *   At most 512 characters, 200 in a segment. If `a` is a key, callers use none that begins with `a/`: stores on file systems
 *   hold only one of the two, and refuse the other.
 * - An _object_ is what is stored under a key: bytes that are replaced as a whole, never changed in part.
 * - An _etag_ names one content of an object: another content has another etag, and equal contents may have the same one. It
 *   means nothing beyond equality. Who needs each `put` to be told apart puts something unique into the content.
 *
 * # Life cycle
 *
 * A store is opened by its adapter and says by `check` whether it serves; a store that takes no notice of conditions is refused
 * there, and its conditional puts are worth nothing before. Objects appear with `put` and go with `delete`. A `put` is all or
 * nothing: a reader sees the whole old object or the whole new one, also after a crash in the middle. What was put is found by
 * `get` and `stat` at once; `list` may be behind for some seconds.
 *
 * # Example: a pointer that two writers move, and neither loses the other's change
 *
 *     const { etag } = await store.put("v1/pointer", bytes("1"), { condition: { kind: "absent" } }, call);
 *     await store.put("v1/pointer", bytes("2"), { condition: { kind: "matches", etag } }, call);
 *     await store.put("v1/pointer", bytes("3"), { condition: { kind: "matches", etag } }, call); // OBJECT_CHANGED
 *
 * # Failures
 *
 * They are `SandboxError`s: `OBJECT_NOT_FOUND`, `OBJECT_CHANGED` if a condition does not hold, `OBJECT_DAMAGED` if what comes
 * back is not what was put, `OBJECT_STORE_FULL`, `OBJECT_STORE_DENIED` for wrong credentials or a missing bucket, and
 * `OBJECT_STORE_UNAVAILABLE` for everything that may be over after a while. An adapter retries the last kind with jitter
 * before it gives up. If it is not known whether a conditional `put` took effect, it looks before it fails; `admitted` of the
 * error says what it knows. An argument that breaks its rule is `INVALID_ARGUMENT` with the field and the rule.
 */
export interface ObjectStore extends AsyncDisposable {
  readonly kind: "s3" | "file" | "fake";

  /** Stores an object of at most `MAX_PUT_BYTES`. */
  put(key: string, body: Uint8Array, options: PutOptions, call: Call): Promise<PutResult>;
  /**
   * Stores an object of any size, in bounded memory. If `body` fails or the signal aborts before its end, nothing is stored and
   * nothing that takes space is left. A failure of `body` is thrown as it is.
   */
  putStream(key: string, body: AsyncIterable<Uint8Array>, call: Call): Promise<PutResult & { readonly bytes: number }>;
  /**
   * `body` fails with `OBJECT_STORE_UNAVAILABLE` if it ends before its time, with the reason of the signal if that aborts, and
   * with `OBJECT_DAMAGED`, at its end, if the whole object was read and is not what was put. Read or destroy it.
   */
  get(key: string, options: GetOptions, call: Call): Promise<ObjectInfo & { readonly body: Readable }>;
  /** Undefined if there is none. */
  stat(key: string, call: Call): Promise<ObjectInfo | undefined>;
  /** Objects whose keys begin with `prefix`, in the order of their keys as bytes, from the first one after `after`. */
  list(prefix: string, options: ListOptions, call: Call): Promise<ObjectPage>;
  /** Removes the objects; those that are not there are gone. */
  delete(keys: readonly string[], call: Call): Promise<void>;
  /**
   * Throws what keeps the store from serving: it writes, reads and removes one small object below `turnbox-check/`. It removes
   * what puts that crashed have left, too, when that is a day old.
   */
  check(call: Call): Promise<void>;
}

/** An object that is put from memory. */
export const MAX_PUT_BYTES = 64 * 1024 * 1024;
/** Most objects of one page of a list, and the default. */
export const MAX_PAGE = 1000;

export interface PutOptions {
  /** Default is `any`: what is there is replaced. */
  readonly condition?: PutCondition;
}

export type PutCondition =
  | { readonly kind: "any" }
  | { readonly kind: "absent" }
  | { readonly kind: "matches"; readonly etag: string };

export interface PutResult {
  readonly etag: string;
}

export interface GetOptions {
  /** A part of the object; default is all of it. What of the range lies after the object is left out. */
  readonly range?: { readonly offset: number; readonly bytes: number };
}

export interface ListOptions {
  /** Default is the first one. */
  readonly after?: string;
  /** From 1 to `MAX_PAGE`, which is the default. */
  readonly limit?: number;
}

export interface ObjectInfo {
  readonly key: string;
  /** Of the whole object. */
  readonly bytes: number;
  readonly etag: string;
  readonly modifiedAtMs: number;
}

export interface ObjectPage {
  readonly objects: readonly ObjectInfo[];
  /** Whether there may be more after the last one. */
  readonly more: boolean;
}
