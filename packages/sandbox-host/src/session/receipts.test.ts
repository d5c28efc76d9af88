import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { SandboxError, systemClock } from "@turnbox/core";
import { openRecords, type Records } from "../record/records.ts";
import { createReceipts } from "./receipts.ts";

const REQUEST = { scope: "token/Move", key: "key", payload: "a to b" };
let directory: string;
let records: Records;
let effects = 0;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnbox-receipts-"));
  records = await openRecords(join(directory, "host.db"));
  effects = 0;
});
afterEach(async () => {
  await records[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

const receiptsOn = (on: Records) => createReceipts({ records: on, clock: systemClock });
const reasonOf = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => "done",
    (thrown: unknown) => SandboxError.from(thrown).reason,
  );
const effect = (): Promise<number> => {
  effects += 1;
  return Promise.resolve(effects);
};
const failing = (reason: "FILE_NOT_FOUND" | "DEADLINE_EXCEEDED") => (): Promise<never> => {
  effects += 1;
  return Promise.reject(new SandboxError(reason, "it failed"));
};

describe("a request whose effect is no record", () => {
  it("is done once for its key, and each time without one", async () => {
    const receipts = receiptsOn(records);
    expect([await receipts.onceApart(REQUEST, effect), await receipts.onceApart(REQUEST, effect)]).toEqual([1, 1]);
    expect(await receiptsOn(records).onceApart(REQUEST, effect)).toBe(1);
    expect(await reasonOf(receipts.onceApart({ ...REQUEST, payload: "a to c" }, effect))).toBe("IDEMPOTENCY_CONFLICT");
    await receipts.onceApart({ ...REQUEST, key: "" }, effect);
    await receipts.onceApart({ ...REQUEST, key: "" }, effect);
    expect(effects).toBe(3);
  });

  it("is reported unknown, and not done again, where the host died between its effect and its receipt", async () => {
    const dying: Records = {
      ...records,
      call: (name, input) =>
        name === "finishReceipt" ? Promise.reject(new Error("killed")) : records.call(name, input),
    };
    await receiptsOn(dying)
      .onceApart(REQUEST, effect)
      .catch(() => undefined);
    expect(effects).toBe(1);
    expect(await reasonOf(receiptsOn(records).onceApart(REQUEST, effect))).toBe("OUTCOME_UNKNOWN");
    expect(effects).toBe(1);
  });

  it("may come again where it was refused, and is unknown where it was cut off", async () => {
    const receipts = receiptsOn(records);
    expect(await reasonOf(receipts.onceApart(REQUEST, failing("FILE_NOT_FOUND")))).toBe("FILE_NOT_FOUND");
    expect(await receipts.onceApart(REQUEST, effect)).toBe(2);
    const cut = { ...REQUEST, key: "cut" };
    expect(await reasonOf(receipts.onceApart(cut, failing("DEADLINE_EXCEEDED")))).toBe("DEADLINE_EXCEEDED");
    expect(await reasonOf(receipts.onceApart(cut, effect))).toBe("OUTCOME_UNKNOWN");
    expect(effects).toBe(3);
  });
});
