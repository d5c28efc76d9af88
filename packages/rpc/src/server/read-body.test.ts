import { getEventListeners } from "node:events";
import { PassThrough } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { type BodyGuard, readBody } from "./read-body.ts";

const NEVER = new AbortController().signal;

function bodyOf(guard: Partial<BodyGuard> = {}) {
  const source = new PassThrough();
  const body = readBody(source, { idleMs: 60_000, signals: [NEVER], ...guard });
  const pieces = body[Symbol.asyncIterator]();
  const text = async (): Promise<string | undefined> => {
    const piece = await pieces.next();
    return piece.done === true ? undefined : Buffer.from(piece.value).toString();
  };
  return { source, body, pieces, text };
}

const listenersOf = (source: PassThrough): number =>
  ["readable", "error", "close"].reduce((sum, event) => sum + source.listenerCount(event), 0);

const failureOf = async (asked: Promise<unknown>): Promise<unknown> =>
  await asked.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );

describe("the body of a request", () => {
  it("is read as it comes, to its end", async () => {
    const { source, text } = bodyOf();
    source.write("one");
    expect(await text()).toBe("one");
    const second = text();
    source.write("two");
    expect(await second).toBe("two");
    const last = text();
    source.end();
    expect([await last, await text()]).toEqual([undefined, undefined]);
    expect(listenersOf(source)).toBe(listenersOf(new PassThrough()));
  });

  it("lets a signal of the server go with its call, though its reader stopped without a word", async () => {
    const { signal } = new AbortController();
    const { source, body, text } = bodyOf({ signals: [signal] });
    const waits = text();
    source.write("does not decode");
    expect(await waits).toBe("does not decode");
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    body[Symbol.dispose]();
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    expect(listenersOf(source)).toBe(listenersOf(new PassThrough()));
  });

  it("fails for a reader that is left when its call is over, and does not seem to end", async () => {
    const { source, body, text } = bodyOf();
    const waits = failureOf(text());
    body[Symbol.dispose]();
    expect(await waits).toMatchObject({ code: Code.Canceled });
    source.end("more");
    expect(await failureOf(text())).toMatchObject({ code: Code.Canceled });
  });

  it("is not read faster than it is asked for", async () => {
    const { source, text } = bodyOf();
    const waits = text();
    source.write("a");
    expect(await waits).toBe("a");
    source.write(Buffer.alloc(64 * 1024));
    expect(source.write("more")).toBe(false);
    await new Promise(setImmediate);
    expect(source.readableLength).toBe(64 * 1024);
  });

  it("is given up where it pauses for too long, or takes too long as a whole", async () => {
    for (const guard of [{ idleMs: 10 }, { idleMs: 60_000, wholeMs: 10 }]) {
      const { source, text } = bodyOf(guard);
      source.write("begun");
      await text();
      const failure = await failureOf(text());
      expect(failure).toBeInstanceOf(ConnectError);
      expect(failure).toMatchObject({ code: Code.DeadlineExceeded });
      expect(source.destroyed).toBe(false);
    }
  });

  it("ends with its signals, for their reason, and leaves the source as it is", async () => {
    const caller = new AbortController();
    const { source, text } = bodyOf({ signals: [NEVER, caller.signal] });
    const waiting = failureOf(text());
    const reason = new Error("the caller has left");
    caller.abort(reason);
    expect(await waiting).toBe(reason);
    source.write("too late");
    expect(await failureOf(text())).toBe(reason);
    expect(source.destroyed).toBe(false);
  });

  it("fails where its source breaks off", async () => {
    const { source, text } = bodyOf();
    const waiting = failureOf(text());
    source.on("error", () => undefined);
    source.destroy();
    expect(await waiting).toMatchObject({ code: Code.Canceled });
    const broken = bodyOf();
    const told = failureOf(broken.text());
    const reason = new Error("reset");
    broken.source.destroy(reason);
    expect(await told).toBe(reason);
  });

  it("is let go of by a reader that has enough, also one that waits", async () => {
    const { source, pieces, text } = bodyOf();
    const waiting = text();
    await pieces.return?.();
    expect(await waiting).toBeUndefined();
    expect(listenersOf(source)).toBe(listenersOf(new PassThrough()));
  });
});
