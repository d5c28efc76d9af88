import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import type { TerminalExecution } from "../runtime/runtime.ts";
import { TerminalInput } from "./terminal-input.ts";

const CALL = { signal: new AbortController().signal };

/** A terminal that takes so many bytes and no more, and keeps what it took. */
function createTerminal(room: number) {
  const clock = createManualClock();
  const state = { room, typed: "" };
  const terminal: Pick<TerminalExecution, "write"> = {
    write: async (data, patienceMs) => {
      const taken = data.subarray(0, state.room);
      state.room -= taken.length;
      state.typed += Buffer.from(taken).toString();
      if (taken.length < data.length) await clock.advance(patienceMs);
      return taken.length;
    },
  };
  return { state, input: new TerminalInput(terminal as TerminalExecution, clock) };
}

describe("TerminalInput", () => {
  it("accepts what the terminal takes, and the rest when it comes again", async () => {
    const { state, input } = createTerminal(3);
    expect(await input.write(0, Buffer.from("abcdef"), CALL)).toBe(3);
    state.room = 10;
    expect(await input.write(0, Buffer.from("abcdef"), CALL)).toBe(6);
    expect(await input.write(3, Buffer.from("defgh"), CALL)).toBe(8);
    expect(state.typed).toBe("abcdefgh");
    expect(input.acceptedBytes).toBe(8);
  });

  it("types bytes once that come several times at the same moment", async () => {
    const { state, input } = createTerminal(200_000);
    const data = Buffer.alloc(150_000, "x");
    const counts = await Promise.all(Array.from({ length: 5 }, () => input.write(0, data, CALL)));
    expect(counts).toEqual([150_000, 150_000, 150_000, 150_000, 150_000]);
    expect(state.typed).toHaveLength(150_000);
  });

  it("keeps nothing of requests that a full terminal does not take, however many wait", async () => {
    const { state, input } = createTerminal(0);
    const data = Buffer.alloc(100_000, "x");
    expect(await Promise.all(Array.from({ length: 5 }, () => input.write(0, data, CALL)))).toEqual([0, 0, 0, 0, 0]);
    state.room = 1_000_000;
    expect(await input.write(0, Buffer.from("y"), CALL)).toBe(1);
    expect(state.typed).toBe("y");
  });

  it("refuses an offset behind a gap, and what is new after the end", async () => {
    const { input } = createTerminal(10);
    await expect(input.write(1, Buffer.from("a"), CALL)).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    await input.write(0, Buffer.from("ab"), CALL);
    input.end();
    expect(await input.write(0, Buffer.from("ab"), CALL)).toBe(2);
    await expect(input.write(2, Buffer.from("c"), CALL)).rejects.toMatchObject({ reason: "INVALID_STATE" });
  });
});
