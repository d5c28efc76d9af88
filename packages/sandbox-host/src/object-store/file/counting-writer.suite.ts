// A process of its own that counts in one object together with others: each adds 1 to what it has read, and none loses another's
// step. Arguments: the directory of the store, the key, how many steps.
import { hasReason, systemClock } from "@turnbox/core";
import { openFileObjectStore } from "./file-object-store.ts";

const [directory = "", key = "", steps = "0"] = process.argv.slice(2);
const call = { signal: AbortSignal.timeout(60_000) };

await using store = await openFileObjectStore({ directory, clock: systemClock }, call);
for (let done = 0; done < Number(steps); ) {
  const { etag, body } = await store.get(key, {}, call);
  const count = Number(Buffer.concat((await body.toArray()) as Buffer[]).toString());
  try {
    await store.put(key, Buffer.from(String(count + 1)), { condition: { kind: "matches", etag } }, call);
    done += 1;
    process.stdout.write(".");
  } catch (thrown) {
    if (!hasReason(thrown, "OBJECT_CHANGED")) throw thrown;
  }
}
