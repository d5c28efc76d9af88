import { describe, expect, it } from "@jest/globals";
import { guardStream } from "./guard-stream.ts";

const create = (source: AsyncIterable<number>) => {
  const controller = new AbortController();
  let ends = 0;
  const guarded = guardStream(source, { signal: controller.signal, onEnd: () => (ends += 1) });
  return { controller, stream: guarded[Symbol.asyncIterator](), ends: () => ends };
};

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("guardStream", () => {
  it("passes messages and the end on, and stays ended when the signal aborts afterwards", async () => {
    const { stream, controller, ends } = create(
      (async function* () {
        yield await Promise.resolve(1);
      })(),
    );
    expect(await stream.next()).toEqual({ done: false, value: 1 });
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    controller.abort();
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    expect(ends()).toBe(1);
  });

  it("runs the source's cleanup on abort though its reader never asks again (M4)", async () => {
    let cleaned = false;
    const { stream, controller, ends } = create(
      (async function* () {
        try {
          yield await Promise.resolve(1);
          yield 2;
        } finally {
          cleaned = true;
        }
      })(),
    );
    await stream.next();
    controller.abort();
    await settle();
    expect(cleaned).toBe(true);
    expect(ends()).toBe(1);
  });

  it("tells an aborted reader why, not that the stream ended well", async () => {
    const { stream, controller } = create(
      (async function* () {
        yield await Promise.resolve(1);
        yield 2;
      })(),
    );
    await stream.next();
    const reason = new Error("deadline");
    controller.abort(reason);
    await settle();
    await expect(stream.next()).rejects.toBe(reason);
  });

  it("frees a reader from a source that does not listen, and counts the source until it ends", async () => {
    let finish = (): void => undefined;
    const { stream, controller, ends } = create(
      (async function* () {
        await new Promise<void>((resolve) => (finish = resolve));
        yield 1;
      })(),
    );
    const pending = stream.next();
    const reason = new Error("gone");
    controller.abort(reason);
    await expect(pending).rejects.toBe(reason);
    expect(ends()).toBe(0);
    finish();
    await settle();
    expect(ends()).toBe(1);
  });

  it("passes a failure on and ends once", async () => {
    const { stream, ends } = create(
      (async function* () {
        yield await Promise.resolve(1);
        throw new Error("broken");
      })(),
    );
    await stream.next();
    await expect(stream.next()).rejects.toThrow("broken");
    await stream.return?.();
    expect(ends()).toBe(1);
  });
});
