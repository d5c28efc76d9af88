import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { createSpinner } from "./spinner.ts";

interface Shown {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

const start = (shown: Shown = { isTTY: true }) => {
  const written: string[] = [];
  const clock = createManualClock();
  const interrupt = new AbortController();
  const stream = { ...shown, write: (bytes: string | Uint8Array): void => void written.push(String(bytes)) };
  const spinner = createSpinner({
    stream,
    clock,
    signal: interrupt.signal,
    charset: "ascii",
    text: "making \u001b[2J it",
  });
  return { written, clock, interrupt, spinner };
};

describe("a spinner", () => {
  it("turns on one line, says how long it has been at it, and is gone when the work ends", async () => {
    const { written, clock, spinner } = start();
    await clock.advance(300);
    await clock.advance(100);
    expect(written).toEqual(["\r| making \\u{001b}[2J it\u001b[K", "\r/ making \\u{001b}[2J it\u001b[K"]);
    spinner.say("still at it");
    await clock.advance(2600);
    expect(written.at(-1)).toMatch(/^\r[|/\\-] still at it 3s\u001b\[K$/);
    spinner[Symbol.dispose]();
    expect(written.at(-1)).toBe("\r\u001b[K");
    const count = written.length;
    await clock.advance(1000);
    expect(written).toHaveLength(count);
  });

  it("is gone with the first Ctrl-C, also while the work is still ending", async () => {
    const { written, clock, interrupt } = start();
    await clock.advance(300);
    interrupt.abort();
    expect(written.at(-1)).toBe("\r\u001b[K");
    const count = written.length;
    await clock.advance(1000);
    expect(written).toHaveLength(count);
  });

  it("shows nothing of what is done at once", async () => {
    const { written, clock, spinner } = start();
    await clock.advance(200);
    spinner[Symbol.dispose]();
    await clock.advance(1000);
    expect(written).toEqual([]);
  });

  it("is drawn nowhere but on a terminal, and there on one line", async () => {
    const elsewhere = start({});
    await elsewhere.clock.advance(1000);
    elsewhere.spinner[Symbol.dispose]();
    expect(elsewhere.written).toEqual([]);
    const narrow = start({ isTTY: true, columns: 9 });
    await narrow.clock.advance(300);
    expect(narrow.written).toEqual(["\r| making\u001b[K"]);
    narrow.spinner[Symbol.dispose]();
  });
});
