import { writeFile } from "node:fs/promises";
import { describe, expect, it } from "@jest/globals";
import { SIGNAL, startTestHost } from "../compose.suite.ts";
import { launch, until } from "./process.suite.ts";
import { readOutput } from "./read-output.ts";

describe("readOutput", () => {
  it("yields a piece without bytes every 15 s while the journal is silent", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const process = await launch(test, session, "sleep");
    let nowMs = 0;
    const sleep = (): Promise<void> => {
      nowMs += 1_000;
      return Promise.resolve();
    };
    const clock = { ...test.host.clock, monotonicMs: () => nowMs, sleep };
    const reader = new AbortController();
    const pieces = readOutput(process, { offset: 0, atEnd: "wait", signal: reader.signal }, clock);
    const alive = { done: false, value: { data: Buffer.alloc(0), offset: 0, droppedBytes: 0, last: "no" } };
    expect([await pieces.next(), nowMs]).toEqual([alive, 15_000]);
    expect([await pieces.next(), nowMs]).toEqual([alive, 30_000]);
    reader.abort();
    expect(await pieces.next()).toMatchObject({ done: true });
  });

  it("counts what is no longer kept, also if nothing is left", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const process = await launch(test, session, "sleep");
    await writeFile(await process.journal.outputPath(), "0123456789");
    await process.journal.rotate(0);
    const pieces = readOutput(process, { offset: 4, atEnd: "stop", signal: SIGNAL }, test.host.clock);
    expect(await pieces.next()).toMatchObject({ value: { offset: 10, droppedBytes: 6, last: "no" } });
    expect(await pieces.next()).toMatchObject({ done: true });
  });

  it("leaves no follower when its signal aborts", async () => {
    await using test = await startTestHost();
    const session = await test.create();
    const process = await launch(test, session, "sleep");
    const reader = new AbortController();
    const pieces = readOutput(process, { offset: 0, atEnd: "wait", signal: reader.signal }, test.host.clock);
    const next = pieces.next();
    await until(() => process.followers.size === 1);
    reader.abort();
    expect(process.followers.size).toBe(0);
    expect(await next).toMatchObject({ done: true });
  });
});
