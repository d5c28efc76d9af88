import { describe, expect, it } from "@jest/globals";
import { createTurnstile } from "./turnstile.ts";

const { signal } = new AbortController();

describe("createTurnstile", () => {
  it("lets work on one key through in the order of asking, one at a time", async () => {
    const turnstile = createTurnstile();
    const log: string[] = [];
    const first = Promise.withResolvers<void>();
    const all = [
      turnstile.pass(
        "a",
        async () => {
          log.push("1 in");
          await first.promise;
          log.push("1 out");
        },
        signal,
      ),
      turnstile.pass(
        "a",
        async () => {
          log.push("2");
          await Promise.resolve();
        },
        signal,
      ),
      turnstile.pass(
        "b",
        async () => {
          log.push("other");
          await Promise.resolve();
          first.resolve();
        },
        signal,
      ),
    ];
    await Promise.all(all);
    expect(log).toEqual(["1 in", "other", "1 out", "2"]);
  });

  it("goes on after work that fails", async () => {
    const turnstile = createTurnstile();
    const failing = turnstile.pass("a", () => Promise.reject(new Error("no")), signal);
    const next = turnstile.pass("a", () => Promise.resolve("yes"), signal);
    await expect(failing).rejects.toThrow("no");
    await expect(next).resolves.toBe("yes");
  });

  it("lets a waiting caller leave without beginning its work, and keeps the order of the others", async () => {
    const turnstile = createTurnstile();
    const leaving = new AbortController();
    const hold = Promise.withResolvers<void>();
    const log: string[] = [];
    const first = turnstile.pass("a", () => hold.promise, signal);
    const left = turnstile.pass("a", () => Promise.resolve(log.push("left")), leaving.signal);
    const last = turnstile.pass("a", () => Promise.resolve(log.push("last")), signal);
    leaving.abort();
    await expect(left).rejects.toMatchObject({ reason: "CANCELLED" });
    expect(log).toEqual([]);
    hold.resolve();
    await Promise.all([first, last]);
    expect(log).toEqual(["last"]);
  });
});
