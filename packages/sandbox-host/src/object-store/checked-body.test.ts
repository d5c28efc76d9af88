import { Readable } from "node:stream";
import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { CheckedBody, type CheckedBodyOptions } from "./checked-body.ts";
import { sha256Of, WholeCheck } from "./content-check.ts";

const CONTENT = Buffer.from("what was put");

const open = (more: Partial<CheckedBodyOptions> = {}): CheckedBody =>
  new CheckedBody({
    key: "a",
    source: Readable.from([CONTENT.subarray(0, 4), CONTENT.subarray(4)]),
    bytes: CONTENT.byteLength,
    check: new WholeCheck(sha256Of(CONTENT)),
    failureOf: (cause) => new SandboxError("OBJECT_STORE_UNAVAILABLE", "failed", { cause }),
    signal: new AbortController().signal,
    ...more,
  });

const read = async (body: CheckedBody): Promise<string> => Buffer.concat((await body.toArray()) as Buffer[]).toString();

describe("CheckedBody", () => {
  it("passes on what was put", async () => {
    expect(await read(open())).toBe("what was put");
  });

  it("fails at its end if the content is another one, and before if it is longer", async () => {
    await expect(read(open({ check: new WholeCheck("0".repeat(64)) }))).rejects.toMatchObject({
      reason: "OBJECT_DAMAGED",
    });
    await expect(read(open({ bytes: 5 }))).rejects.toMatchObject({ reason: "OBJECT_DAMAGED" });
  });

  it("fails where the source ends early, fails or goes away", async () => {
    const failing = Readable.from(
      (function* () {
        yield CONTENT;
        throw new Error("broke");
      })(),
    );
    const gone = new Readable({ read: () => undefined });
    const left = read(open({ source: gone }));
    gone.destroy();
    for (const end of [read(open({ bytes: 100 })), read(open({ source: failing })), left]) {
      await expect(end).rejects.toMatchObject({ reason: "OBJECT_STORE_UNAVAILABLE" });
    }
  });

  it("ends its source when it is destroyed, and with the signal", async () => {
    const sources = [1, 2, 3].map(() => new Readable({ read: () => undefined }));
    const stop = new AbortController();
    const [one, other, late] = sources.map((source) => () => open({ source, signal: stop.signal })) as [
      () => CheckedBody,
      () => CheckedBody,
      () => CheckedBody,
    ];
    one().destroy();
    const reading = expect(read(other())).rejects.toThrow("enough");
    stop.abort(new Error("enough"));
    await reading;
    await expect(read(late())).rejects.toThrow("enough");
    expect(sources.map(({ destroyed }) => destroyed)).toEqual([true, true, true]);
  });

  it("gives up on a source that sends nothing for too long, and not on a reader that waits", async () => {
    const clock = createManualClock();
    const source = new Readable({ read: () => undefined });
    const body = open({ source, stall: { clock, ms: 1000 } });
    source.push("what");
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(5000);
    expect(body.destroyed).toBe(false);
    const reading = expect(read(body)).rejects.toMatchObject({ reason: "OBJECT_STORE_UNAVAILABLE" });
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(2000);
    await reading;
  });
});
