import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { FairSemaphore } from "./fair-semaphore.ts";

const never = new AbortController().signal;
const settled = async (): Promise<void> => {
  for (let count = 0; count < 20; count += 1) await Promise.resolve();
};

/** Asks for permits in this order; says which keys have been let in, in the order in which they were. */
function asking(semaphore: FairSemaphore, keys: readonly string[]) {
  const entered: { readonly key: string; readonly leave: () => void }[] = [];
  for (const key of keys) void semaphore.acquire(key, never).then((leave) => entered.push({ key, leave }));
  return entered;
}

describe("FairSemaphore", () => {
  it("go to the key that holds least, and in turn to keys that hold the same", async () => {
    const semaphore = new FairSemaphore({ count: 1, maxWaiting: 100 });
    const entered = asking(semaphore, ["hog", "hog", "hog", "hog", "b", "c", "b"]);
    for (let count = 0; count < 7; count += 1) {
      await settled();
      expect(entered).toHaveLength(count + 1);
      entered[count]?.leave();
    }
    expect(entered.map(({ key }) => key)).toEqual(["hog", "hog", "b", "c", "hog", "b", "hog"]);
  });

  it("are left free by a key that asks for too many of them", async () => {
    const semaphore = new FairSemaphore({ count: 4, maxWaiting: 100 });
    const hogs = asking(semaphore, ["hog", "hog", "hog"]);
    await settled();
    expect(hogs).toHaveLength(2);
    const others = asking(semaphore, ["b", "c"]);
    await settled();
    expect(others).toHaveLength(2);
    others[0]?.leave();
    await settled();
    expect(hogs).toHaveLength(2);
    hogs[0]?.leave();
    others[1]?.leave();
    await settled();
    expect(hogs).toHaveLength(3);
  });

  it("are refused to a key with too many waiting calls, and are not held by one that stops waiting", async () => {
    const semaphore = new FairSemaphore({ count: 1, maxWaiting: 3 });
    const leave = await semaphore.acquire("a", never);
    const over = new AbortController();
    const waiting = semaphore.acquire("a", over.signal).catch((thrown: unknown) => SandboxError.from(thrown).reason);
    await expect(semaphore.acquire("a", never)).rejects.toMatchObject({ reason: "OVERLOADED" });
    const other = asking(semaphore, ["b"]);
    over.abort();
    expect(await waiting).toBe("CANCELLED");
    leave();
    await settled();
    expect(other).toHaveLength(1);
    await expect(semaphore.acquire("a", AbortSignal.abort())).rejects.toThrow();
  });
});
