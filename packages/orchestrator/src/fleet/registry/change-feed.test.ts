import { describe, expect, it } from "@jest/globals";
import type { FleetChange } from "../fleet-view.ts";
import { ChangeFeed } from "./change-feed.ts";

const change = (instanceId: string): FleetChange =>
  ({ kind: "changed", instance: { instanceId } }) as unknown as FleetChange;

describe("ChangeFeed", () => {
  it("hands each reader what came since it began, and ends with its signal", async () => {
    const feed = new ChangeFeed();
    const over = new AbortController();
    feed.publish(change("before"));
    const reader = feed.changes({ signal: over.signal })[Symbol.asyncIterator]();
    feed.publish(change("a"));
    feed.publish(change("b"));
    expect(await reader.next()).toEqual({ done: false, value: change("a") });
    expect(await reader.next()).toEqual({ done: false, value: change("b") });
    const waiting = reader.next();
    over.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
  });

  it("tells a slow reader that it has missed something, and no other", async () => {
    const feed = new ChangeFeed(2);
    const { signal } = new AbortController();
    const slow = feed.changes({ signal })[Symbol.asyncIterator]();
    for (const id of ["a", "b", "c", "d"]) feed.publish(change(id));
    expect(await slow.next()).toEqual({ done: false, value: { kind: "overflow" } });
    expect(await slow.next()).toEqual({ done: false, value: change("d") });
  });
});
