import { describe, expect, it } from "@jest/globals";
import { type Call, SandboxError } from "@turnbox/core";
import { DataKey } from "./data-key.ts";
import type { KeyContext, KeyWrap, WrappedKey } from "./key-wrap.ts";

export interface KeyWrapWorld {
  readonly wrap: KeyWrap;
  /** What has the same keys, and a newer one that wraps. */
  readonly rotated: KeyWrap;
  /** What has none of the keys. */
  readonly stranger: KeyWrap;
}

const CALL: Call = { signal: new AbortController().signal };
const CONTEXT: KeyContext = { tenant: "t1", kind: "sandbox", id: "s1", format: 1 };

async function failureOf(work: Promise<unknown>): Promise<SandboxError> {
  const thrown: unknown = await work.then(
    () => new Error("it did not fail"),
    (failure: unknown) => failure,
  );
  if (!(thrown instanceof SandboxError)) throw thrown;
  return thrown;
}

/** What every adapter of the port does. */
export function keyWrapSuite(name: string, create: () => Promise<KeyWrapWorld>): void {
  describe(`${name} as what wraps keys`, () => {
    it("unwraps what it has wrapped, each time in other bytes", async () => {
      const { wrap } = await create();
      using key = DataKey.random();
      const wrapped = [await wrap.wrap(key, CONTEXT, CALL), await wrap.wrap(key, CONTEXT, CALL)];
      for (const one of wrapped) {
        using again = await wrap.unwrap(one, CONTEXT, CALL);
        expect(again.reveal().equals(key.reveal())).toBe(true);
        expect(Buffer.from(one.bytes).includes(key.reveal())).toBe(false);
      }
      expect(Buffer.from(wrapped[0]!.bytes).equals(wrapped[1]!.bytes)).toBe(false);
    });

    it("refuses a wrapped key in the context of another tenant, owner, kind or format", async () => {
      const { wrap } = await create();
      const wrapped = await wrap.wrap(DataKey.random(), CONTEXT, CALL);
      const others: readonly Partial<KeyContext>[] = [
        { tenant: "t2" },
        { id: "s2" },
        { kind: "template" },
        { format: 2 },
        { tenant: "t1s", id: "1" },
      ];
      for (const other of others)
        expect((await failureOf(wrap.unwrap(wrapped, { ...CONTEXT, ...other }, CALL))).reason).toBe("ARCHIVE_DAMAGED");
    });

    it("refuses a wrapped key that was changed anywhere, or cut off", async () => {
      const { wrap } = await create();
      const { keyId, bytes } = await wrap.wrap(DataKey.random(), CONTEXT, CALL);
      const changed: WrappedKey[] = [
        { keyId, bytes: bytes.subarray(1) },
        { keyId, bytes: bytes.subarray(0, -1) },
      ];
      for (let at = 0; at < bytes.byteLength; at += 1) {
        const other = Buffer.from(bytes);
        other[at]! ^= 1 << (at % 8);
        changed.push({ keyId, bytes: other });
      }
      for (const one of changed)
        expect((await failureOf(wrap.unwrap(one, CONTEXT, CALL))).reason).toMatch(/^ARCHIVE_(DAMAGED|KEY_WRONG)$/);
    });

    it("unwraps under a key that no longer wraps, and wraps under the newest", async () => {
      const { wrap, rotated } = await create();
      using key = DataKey.random();
      const old = await wrap.wrap(key, CONTEXT, CALL);
      using again = await rotated.unwrap(old, CONTEXT, CALL);
      expect(again.id).toBe(key.id);
      const fresh = await rotated.wrap(key, CONTEXT, CALL);
      expect(fresh.keyId).not.toBe(old.keyId);
    });

    it("names the key that is needed if it is not there", async () => {
      const { wrap, stranger } = await create();
      const wrapped = await wrap.wrap(DataKey.random(), CONTEXT, CALL);
      const failure = await failureOf(stranger.unwrap(wrapped, CONTEXT, CALL));
      expect(failure).toMatchObject({ reason: "ARCHIVE_KEY_WRONG", metadata: { keyId: wrapped.keyId } });
      expect(failure.message).toContain(wrapped.keyId);
    });

    it("does nothing under a signal that has aborted", async () => {
      const { wrap } = await create();
      const call = { signal: AbortSignal.abort(new Error("enough")) };
      await expect(wrap.wrap(DataKey.random(), CONTEXT, call)).rejects.toThrow("enough");
    });
  });
}
