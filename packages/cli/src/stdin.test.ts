import { PassThrough } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { readStdin, type StdinOptions } from "./stdin.ts";

const setup = (silence: StdinOptions["silence"]) => {
  const stdin = new PassThrough();
  const clock = createManualClock();
  const told: string[] = [];
  const { signal } = new AbortController();
  const reading = readStdin(stdin, { clock, signal, silence, onSilence: () => told.push("silent") });
  return { stdin, clock, told, reading };
};

describe("readStdin", () => {
  it("goes on without input that stays open and silent, and says so", async () => {
    const { clock, told, reading } = setup("do without");
    await clock.advance(1000);
    expect(await reading).toHaveLength(0);
    expect(told).toEqual(["silent"]);
  });

  it("reads to the end once something came, however slowly the rest comes", async () => {
    const { stdin, clock, told, reading } = setup("do without");
    stdin.write("a");
    await clock.advance(10);
    await clock.advance(60_000);
    stdin.end("b");
    expect(Buffer.from(await reading).toString()).toBe("ab");
    expect(told).toEqual([]);
  });

  it("waits for silent input where it was told to", async () => {
    const { stdin, clock, reading } = setup("wait");
    await clock.advance(60_000);
    stdin.end("late");
    expect(Buffer.from(await reading).toString()).toBe("late");
  });
});
