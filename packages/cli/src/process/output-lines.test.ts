import { describe, expect, it } from "@jest/globals";
import type { Result } from "../output.ts";
import { createOutputLines } from "./output-lines.ts";

describe("createOutputLines", () => {
  it("tears no character in two, and counts bytes", async () => {
    const printed: object[] = [];
    const output = { result: ({ json }: Result) => Promise.resolve(void printed.push(json)) };
    const lines = createOutputLines(output, { sandboxId: "s", offset: 10 });
    const [first, second] = [Buffer.from("aé").subarray(0, 2), Buffer.from("aé").subarray(2)];
    await lines.bytes(first);
    await lines.bytes(second);
    await lines.dropped(5);
    await lines.bytes(Buffer.from([0xe2]));
    await lines.end("detached");
    expect(printed).toEqual([
      { event: "output", offset: 10, text: "a" },
      { event: "output", offset: 12, text: "é" },
      { event: "dropped", offset: 13, bytes: 5 },
      { event: "output", offset: 19, text: "\ufffd" },
      { event: "detached", sandboxId: "s", nextOffset: 19 },
    ]);
  });
});
