import { type Clock, replaceMembers } from "@turnbox/core";
import { SharedLooks } from "../share/shared-looks.ts";
import type { Storage } from "./storage.ts";

/** How old the sizes of all sessions may be. They are some seconds old anyway: storage writes in groups. */
const MAX_AGE_MS = 2000;

/**
 * The storage, with reads that many callers may ask for at once shared among them: each is a command that runs. Everything
 * else goes to it as it is.
 */
export function withSharedReads(storage: Storage, clock: Clock): Storage {
  const used = new SharedLooks((token, call) => storage.usedBytes(token, call));
  const snapshots = new SharedLooks((token, call) => storage.listSnapshots(token, call));
  let all: { readonly atMs: number; readonly bytes: ReadonlyMap<string, number> } | undefined;
  const usedOfAll = new SharedLooks(async (_, call) => {
    const atMs = clock.monotonicMs();
    if (all !== undefined && atMs - all.atMs < MAX_AGE_MS) return all.bytes;
    const bytes = await storage.usedBytesOfAll(call);
    all = { atMs, bytes };
    return bytes;
  });
  return replaceMembers(storage, {
    usedBytes: (token, call) => used.ask(token, call),
    usedBytesOfAll: (call) => usedOfAll.ask("", call),
    listSnapshots: (token, call) => snapshots.ask(token, call),
  });
}
