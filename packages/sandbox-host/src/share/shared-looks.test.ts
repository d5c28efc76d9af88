import { describe, expect, it } from "@jest/globals";
import { SharedLooks } from "./shared-looks.ts";

const CALL = { signal: new AbortController().signal };

function rig() {
  const begun: { readonly key: string; readonly end: (answer: number | Error) => void }[] = [];
  const looks = new SharedLooks<number>(async (key) => {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    begun.push({
      key,
      end: (answer) => {
        if (answer instanceof Error) reject(answer);
        else resolve(answer);
      },
    });
    return await promise;
  });
  return { looks, begun };
}
const settled = async (): Promise<void> => {
  for (let count = 0; count < 20; count += 1) await Promise.resolve();
};

describe("looks that callers share", () => {
  it("are two for a thousand calls at once, and no result is older than its call", async () => {
    const { looks, begun } = rig();
    const first = looks.ask("a", CALL);
    const others = Array.from({ length: 999 }, () => looks.ask("a", CALL));
    expect(begun).toHaveLength(1);
    begun[0]?.end(1);
    expect(await first).toBe(1);
    await settled();
    begun[1]?.end(2);
    expect(new Set(await Promise.all(others))).toEqual(new Set([2]));
    const later = looks.ask("a", CALL);
    begun[2]?.end(3);
    expect([await later, begun.length]).toEqual([3, 3]);
  });

  it("are separate for each key", async () => {
    const { looks, begun } = rig();
    const asked = [looks.ask("a", CALL), looks.ask("b", CALL)];
    expect(begun.map(({ key }) => key)).toEqual(["a", "b"]);
    for (const { end } of begun) end(7);
    expect(await Promise.all(asked)).toEqual([7, 7]);
  });

  it("fail for the callers of that look alone, and go on if one of them leaves", async () => {
    const { looks, begun } = rig();
    const leave = new AbortController();
    const gone = looks.ask("a", leave);
    const next = looks.ask("a", CALL);
    leave.abort();
    await expect(gone).rejects.toMatchObject({ reason: "CANCELLED" });
    begun[0]?.end(new Error("no"));
    await settled();
    begun[1]?.end(4);
    expect(await next).toBe(4);
    const failing = looks.ask("a", CALL);
    begun[2]?.end(new Error("broken"));
    await expect(failing).rejects.toThrow("broken");
  });
});
