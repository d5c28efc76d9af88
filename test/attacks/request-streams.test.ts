import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { loadOrCreateHomeToken } from "@turnbox/core";
import { startHost, type TestHost } from "../support/host.ts";
import { createSession, script } from "../support/host-calls.ts";

let host: TestHost;
beforeAll(async () => {
  host = await startHost();
  await createSession(host, "neighbour");
  await script(host, "neighbour", "echo here > file.txt");
}, 120_000);
afterAll(async () => {
  await host[Symbol.asyncDispose]();
}, 120_000);

/** All names and contents; the times of directories may change when a write begins. */
const files = async (): Promise<string> => await script(host, "neighbour", "find . | sort; cat file.txt");

function frame(message: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** A stream by its frames; answers with the reason and the message of the refusal. */
async function streamed(method: string, type: string, body: Buffer): Promise<string> {
  const home = loadOrCreateHomeToken(join(host.home, "token")).reveal();
  const response = await fetch(`${host.url}/turnbox.host.v1.${method}`, {
    method: "POST",
    headers: { authorization: `Bearer ${home}`, "content-type": `application/connect+${type}` },
    body: new Uint8Array(body),
  });
  const text = await response.text();
  const [, reason = "none"] = /"reason":"([A-Z_]+)"/.exec(text) ?? [];
  return `${reason} ${/"message":"([^"]*)/.exec(text)?.[1] ?? ""}`;
}

const STREAMS: readonly (readonly [string, object])[] = [
  ["FileService/WriteFile", { sessionId: "neighbour", path: "/workspace/half.txt" }],
  ["FileService/UploadArchive", { sessionId: "neighbour", path: "/workspace" }],
  ["HostService/ImportTemplate", { name: "half" }],
];

const text = (value: string): Buffer => frame(Buffer.from(value));

/** Frames that do not decode, and what the refusal names. */
const BROKEN: readonly (readonly [string, "json" | "proto", Buffer, RegExp])[] = [
  ["a header of another kind", "json", text('{"header":5}'), /Header/],
  ["a number that is none", "json", text('{"header":{"idempotencyKey":0.5}}'), /idempotency_key/],
  ["no base64", "json", text('{"data":"%"}'), /^INVALID_ARGUMENT data: /],
  ["no JSON", "json", text("{"), /Request/],
  ["a wrong wire type", "proto", frame(Buffer.from([0x10, 1])), /^INVALID_ARGUMENT data: /],
  ["a field that is cut off", "proto", frame(Buffer.from([0x0a, 9, 1])), /^INVALID_ARGUMENT header: /],
  ["unknown flags", "json", frame(Buffer.from("{}"), 8), /flags 8/],
  ["compression that is not named", "json", frame(gzipSync("{}"), 1), /compress/],
  ["half an envelope", "json", text("{}").subarray(0, 6), /envelope/],
];

describe("streams whose messages do not decode, on a real host", () => {
  it.each(STREAMS)(
    "%s refuses them first, second and after data, by their field, and changes nothing",
    async (method, header) => {
      const pid = host.pid;
      const before = await files();
      // The binary form of the header is not made here: in binary a broken frame comes first.
      const first = text(JSON.stringify({ header }));
      const data = text(JSON.stringify({ data: Buffer.from("part of it").toString("base64") }));
      for (const [name, type, broken, named] of BROKEN) {
        const befores = type === "json" ? [[], [first], [first, data, data]] : [[]];
        for (const frames of befores) {
          const answer = await streamed(method, type, Buffer.concat([...frames, broken]));
          expect([name, frames.length, answer]).toEqual([
            name,
            frames.length,
            expect.stringMatching(/^INVALID_ARGUMENT /),
          ]);
          expect(answer).toMatch(named);
        }
      }
      expect(await files()).toBe(before);
      expect(JSON.stringify(await host.call("HostService/ListTemplates"))).not.toContain('"half"');
      expect(host.pid).toBe(pid);
    },
    60_000,
  );

  it("WriteFile names expected_generation in a later message", async () => {
    const header = text(JSON.stringify({ header: { sessionId: "neighbour", path: "/workspace/half.txt" } }));
    const later = text('{"header":{"expected_generation":0.5}}');
    expect(await streamed("FileService/WriteFile", "json", Buffer.concat([header, later]))).toMatch(
      /^INVALID_ARGUMENT expected_generation: /,
    );
  });
});
