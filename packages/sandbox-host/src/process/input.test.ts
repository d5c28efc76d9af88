import { constants } from "node:fs";
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createChildCommandRunner, systemClock } from "@turnbox/core";
import { createProcessInput } from "./input.ts";

const CALL = { signal: new AbortController().signal };

describe("createProcessInput", () => {
  let directory: string;
  let reader: FileHandle;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "turnbox-input-"));
    const path = join(directory, "input");
    await createChildCommandRunner().run({ command: "mkfifo", args: [path], deadlineMs: 5000 });
    reader = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  });
  afterEach(async () => {
    await reader.close();
    await rm(directory, { recursive: true, force: true });
  });
  const read = async (): Promise<string> => {
    const { bytesRead, buffer } = await reader.read(Buffer.alloc(1024 * 1024));
    return buffer.subarray(0, bytesRead).toString("utf8");
  };

  it("writes each byte once, however often and in whatever pieces it comes", async () => {
    const input = createProcessInput(directory, systemClock);
    expect(await input.write(0, Buffer.from("abc"), CALL)).toBe(3);
    expect(await input.write(0, Buffer.from("abc"), CALL)).toBe(3);
    expect(await input.write(1, Buffer.from("bcde"), CALL)).toBe(5);
    await Promise.all([input.write(5, Buffer.from("fg"), CALL), input.write(5, Buffer.from("fg"), CALL)]);
    expect(await read()).toBe("abcdefg");
  });

  it("goes on at the offset of an earlier service", async () => {
    await createProcessInput(directory, systemClock).write(0, Buffer.from("abc"), CALL);
    const later = createProcessInput(directory, systemClock);
    expect(later.acceptedBytes).toBe(3);
    expect(await later.write(0, Buffer.from("abcd"), CALL)).toBe(4);
    expect(await read()).toBe("abcd");
  });

  it("refuses a gap, an ended input, and one without a reader", async () => {
    const input = createProcessInput(directory, systemClock);
    await expect(input.write(1, Buffer.from("b"), CALL)).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    await input.write(0, Buffer.from("a"), CALL);
    input.end();
    await expect(input.write(1, Buffer.from("b"), CALL)).rejects.toMatchObject({ reason: "INVALID_STATE" });
    expect(await createProcessInput(directory, systemClock).write(0, Buffer.from("a"), CALL)).toBe(1);
    await rm(join(directory, "input-ended"));
    await reader.close();
    await expect(input.write(1, Buffer.from("b"), CALL)).rejects.toMatchObject({ reason: "INVALID_STATE" });
    reader = await open(join(directory, "accepted"));
  });

  it("takes what fits and says how much that was, without waiting for the process", async () => {
    const input = createProcessInput(directory, systemClock);
    const data = Buffer.alloc(1024 * 1024, "x");
    const accepted = await input.write(0, data, CALL);
    expect(accepted).toBe(64 * 1024);
    expect(await read()).toHaveLength(64 * 1024);
    expect(await input.write(accepted, data.subarray(accepted, accepted + 10), CALL)).toBe(accepted + 10);
  });
});
