import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import type { JobRun } from "./job-run.ts";
import { askedInTime, sentInTime, STALL_MS } from "./stall.ts";

const PIECE = { bytes: Buffer.from("x"), about: null };

function runOf(pieces: number) {
  const state = { left: pieces, isDisposed: false };
  const run: JobRun<null> = {
    next: () => Promise.resolve(state.left-- > 0 ? PIECE : null),
    output: null,
    [Symbol.dispose]: () => {
      state.isDisposed = true;
    },
  };
  return { run, state };
}

const reasonOf = (thrown: unknown): string => SandboxError.from(thrown).reason;

describe("a stream from a worker", () => {
  it("gives the worker back when its reader takes nothing for a minute, and fails the reader's next call", async () => {
    const clock = createManualClock();
    const { run, state } = runOf(3);
    const pieces = askedInTime(run, clock);
    await pieces.next();
    await clock.advance(STALL_MS - 1);
    await pieces.next();
    await clock.advance(STALL_MS - 1);
    expect(state.isDisposed).toBe(false);
    await clock.advance(1);
    expect(state.isDisposed).toBe(true);
    expect(await pieces.next().catch(reasonOf)).toBe("STREAM_STALLED");
  });

  it("ends with the run, and leaves no alarm", async () => {
    const clock = createManualClock();
    const { run, state } = runOf(2);
    let count = 0;
    for await (const piece of askedInTime(run, clock)) count += piece.bytes.length;
    expect([count, state.isDisposed, clock.sleeping]).toEqual([2, false, 0]);
    for await (const _piece of askedInTime(runOf(2).run, clock)) break;
    expect(clock.sleeping).toBe(0);
  });
});

describe("a body for a worker", () => {
  it("fails when its sender sends nothing for a minute, but not when the worker takes longer", async () => {
    const clock = createManualClock();
    const stuck = new Promise<never>(() => undefined);
    async function* body() {
      yield Buffer.from("a");
      yield Buffer.from("b");
      await stuck;
    }
    const pieces = sentInTime(body(), clock);
    await pieces.next();
    await clock.advance(10 * STALL_MS);
    expect((await pieces.next()).value).toEqual(Buffer.from("b"));
    const third = pieces.next().catch(reasonOf);
    await clock.advance(STALL_MS);
    expect(await third).toBe("STREAM_STALLED");
  });

  it("ends with its sender", async () => {
    const clock = createManualClock();
    async function* body() {
      yield Buffer.from("a");
    }
    const all: Uint8Array[] = [];
    for await (const piece of sentInTime(body(), clock)) all.push(piece);
    expect([all, clock.sleeping]).toEqual([[Buffer.from("a")], 0]);
  });
});
