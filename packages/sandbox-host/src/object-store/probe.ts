import { type Call, type Clock, hasReason, randomToken, SandboxError } from "@turnbox/core";
import type { ObjectStore, PutCondition } from "./object-store.ts";

/** Where the objects of checks are. */
export const PROBES = "turnbox-check/";
/** A check that crashed has left its object; one that is under way is younger. */
const LEFT_AFTER_MS = 60 * 60 * 1000;

/**
 * Puts, reads and removes one small object, and tries the conditions that must not hold. What the store is asked for is what
 * the callers of the port rely on.
 */
export async function probe(store: ObjectStore, clock: Clock, call: Call): Promise<void> {
  const key = `${PROBES}${randomToken(16)}`;
  try {
    await tryConditions(store, key, call);
    const { body } = await store.get(key, {}, call);
    const read = await body.toArray();
    if (Buffer.concat(read as Buffer[]).toString() !== "second") throw refusal("gives back other bytes than were put");
  } catch (thrown) {
    await store.delete([key], call).catch(() => undefined);
    throw thrown;
  }
  await store.delete([key], call);
  await removeLeft(store, clock, call);
}

async function tryConditions(store: ObjectStore, key: string, call: Call): Promise<void> {
  const put = async (text: string, condition: PutCondition): Promise<string> =>
    (await store.put(key, Buffer.from(text), { condition }, call)).etag;
  const first = await put("first", { kind: "absent" });
  await expectChanged(put("other", { kind: "absent" }), "If-None-Match");
  const second = await put("second", { kind: "matches", etag: first });
  if (second === first) throw refusal("gives two contents one etag");
  await expectChanged(put("other", { kind: "matches", etag: first }), "If-Match");
}

async function expectChanged(attempt: Promise<unknown>, condition: string): Promise<void> {
  try {
    await attempt;
  } catch (thrown) {
    if (hasReason(thrown, "OBJECT_CHANGED")) return;
    throw thrown;
  }
  throw refusal(
    `takes no notice of conditions of writes (${condition}), so that writers would undo each other's changes`,
  );
}

async function removeLeft(store: ObjectStore, clock: Clock, call: Call): Promise<void> {
  const { objects } = await store.list(PROBES, {}, call);
  const left = objects.filter(({ modifiedAtMs }) => clock.nowMs() - modifiedAtMs > LEFT_AFTER_MS);
  await store.delete(
    left.map(({ key }) => key),
    call,
  );
}

const refusal = (what: string): SandboxError =>
  new SandboxError("OBJECT_STORE_DENIED", `the object store cannot be used: it ${what}`);
