import { describe, expect, it } from "@jest/globals";
import { linkSignals } from "./linked-signal.ts";

const reasonOf = ({ signal }: { readonly signal: AbortSignal }): unknown => signal.reason;

describe("linkSignals", () => {
  it("ends with the first of its signals, for that one's reason", () => {
    const first = new AbortController();
    const second = new AbortController();
    using linked = linkSignals([first.signal, second.signal]);
    expect(linked.signal.aborted).toBe(false);
    second.abort("second");
    first.abort("first");
    expect(reasonOf(linked)).toBe("second");
  });

  it("has ended where one of its signals had, and follows none then", () => {
    const gone = new AbortController();
    const other = new AbortController();
    gone.abort("gone");
    using linked = linkSignals([other.signal, gone.signal]);
    other.abort("other");
    expect(reasonOf(linked)).toBe("gone");
  });

  it("ends by itself, which its signals do not notice", () => {
    const source = new AbortController();
    using linked = linkSignals([source.signal]);
    using other = linkSignals([source.signal]);
    linked.abort("enough");
    expect([reasonOf(linked), source.signal.aborted, other.signal.aborted]).toEqual(["enough", false, false]);
  });

  it("ends with a signal that was linked before, and no longer once it is disposed of", () => {
    const source = new AbortController();
    const over = linkSignals([source.signal]);
    using going = linkSignals([source.signal]);
    over[Symbol.dispose]();
    source.abort("source");
    expect([over.signal.aborted, reasonOf(going)]).toEqual([false, "source"]);
  });

  it("ends with itself followed by another", () => {
    const source = new AbortController();
    using outer = linkSignals([source.signal]);
    using inner = linkSignals([outer.signal]);
    source.abort("source");
    expect(reasonOf(inner)).toBe("source");
  });
});
