import type { Call } from "@turnbox/core";
import type { DataKey } from "./data-key.ts";

/** What a data key belongs to. */
export interface KeyOwner {
  readonly tenant: string;
  readonly kind: "sandbox" | "template";
  readonly id: string;
}

/** What a data key is wrapped for. It is authenticated: a wrapped key that is moved to another owner does not unwrap there. */
export interface KeyContext extends KeyOwner {
  /** The archive format that the key is used with. */
  readonly format: number;
}

/** A data key as it may be stored anywhere. */
export interface WrappedKey {
  /** The key that it was wrapped by. */
  readonly keyId: string;
  readonly bytes: Uint8Array;
}

/**
 * Encrypts data keys under a key that never leaves its keeper, so that data keys can be stored beside what they encrypt.
 *
 * # Words
 *
 * - A _data key_ encrypts what is stored of one owner, a sandbox or a template.
 * - To _wrap_ is to encrypt a data key. What wraps may have several keys: the newest wraps, and each unwraps what it has wrapped.
 *
 * # Example: a key that is stored and used again
 *
 *     const wrapped = await keys.wrap(dataKey, context, call);
 *     // ... `wrapped` is stored, read on another machine ...
 *     using again = await keys.unwrap(wrapped, context, call);
 *
 * # Failures
 *
 * `ARCHIVE_KEY_WRONG` if the key that `wrapped.keyId` names is not there or may not be used; `ARCHIVE_DAMAGED` if it is there
 * and the wrapped key was changed, or belongs to another context; `ARCHIVE_KEY_UNAVAILABLE` for what may pass.
 */
export interface KeyWrap {
  readonly kind: "file" | "kms" | "fake";

  wrap(key: DataKey, context: KeyContext, call: Call): Promise<WrappedKey>;
  /** The caller disposes of the key. */
  unwrap(wrapped: WrappedKey, context: KeyContext, call: Call): Promise<DataKey>;
}
