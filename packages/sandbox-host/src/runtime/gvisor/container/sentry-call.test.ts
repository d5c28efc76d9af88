import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { callSentry, readAnswer, SentryGone, SentryRefusal } from "./sentry-call.ts";

const PATIENCE_MS = 20_000;

describe("a question to a sentry that may be anything", () => {
  let directory: string;
  let socketPath: string;
  let server: Server;
  let lines: Socket[];
  let answer: (line: Socket) => void;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "sentry-"));
    socketPath = join(directory, "socket");
    lines = [];
    server = createServer((line) => {
      lines.push(line);
      line.on("error", () => undefined);
      line.once("data", () => {
        answer(line);
      });
    });
    await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  });
  afterEach(async () => {
    for (const line of lines) line.destroy();
    await new Promise((resolve) => server.close(resolve));
    await rm(directory, { recursive: true });
  });

  const ask = (signal = AbortSignal.timeout(PATIENCE_MS)): Promise<unknown> =>
    callSentry({ socketPath, method: "Processes", arg: "a" }, signal);

  it("is answered, in whatever pieces the answer comes", async () => {
    answer = (line) => {
      const bytes = Buffer.from('{"success":true,"err":"","result":["ü}"]}\n');
      const send = (at: number): void => {
        if (at < bytes.length) line.write(bytes.subarray(at, at + 1), () => setImmediate(send, at + 1));
      };
      send(0);
    };
    expect(await ask()).toEqual(["ü}"]);
  });

  it.each([
    ["garbage", "\u0000\u0001<html>"],
    ["what is no JSON after all", '{"success":tru}'],
    ["no object", "null"],
    ["a reason that is none", '{"success":false,"err":{"toString":1}}'],
    ["100 MB", `{"success":true,"result":"${"x".repeat(100 * 1024 * 1024)}"}`],
    ["deep nesting", `{"a":${"[".repeat(9 * 1024 * 1024)}`],
  ])("fails where %s comes back, and the next one does not", async (_, sent) => {
    answer = (line) => void line.write(sent);
    await expect(ask()).rejects.toBeInstanceOf(SentryRefusal);
    answer = (line) => void line.write('{"success":true,"result":7}');
    expect(await ask()).toBe(7);
  });

  it("fails where half of an answer comes back, or none, and the line ends", async () => {
    answer = (line) => void line.end('{"success":true,');
    await expect(ask()).rejects.toBeInstanceOf(SentryGone);
    answer = (line) => void line.end();
    await expect(ask()).rejects.toBeInstanceOf(SentryGone);
  });

  it("fails by its signal where nothing more comes back, and lets go of the line", async () => {
    answer = (line) => void line.write('{"success":');
    await expect(ask(AbortSignal.timeout(200))).rejects.toThrow("timeout");
    answer = () => undefined;
    await expect(ask(AbortSignal.timeout(200))).rejects.toThrow("timeout");
  });
});

describe("the answer of a sentry", () => {
  it("is a result, a refusal, or none", () => {
    expect(readAnswer('{"success":true,"result":3}')).toEqual({ kind: "result", result: 3 });
    expect(readAnswer('{"success":false,"err":"no"}')).toEqual({ kind: "refusal", why: "no" });
    for (const none of ["", "null", "{", "nonsense"]) expect(readAnswer(none)).toBeUndefined();
  });
});
