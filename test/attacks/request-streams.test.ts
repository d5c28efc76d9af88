import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { create, type DescMethod, toBinary, toJsonString } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { loadOrCreateHomeToken } from "@turnbox/core";
import { SandboxControlService } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { HostService } from "@turnbox/protocol/turnbox/host/v1/host_pb";
import { startHost, type TestHost } from "../support/host.ts";
import { createSession, script } from "../support/host-calls.ts";
import { startServer } from "../support/server.ts";

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

interface Service {
  readonly home: string;
  readonly url: string;
}

/** A stream by its frames; answers with the reason and the message of the refusal. */
async function streamed(service: Service, method: string, type: string, body: Buffer): Promise<string> {
  const token = loadOrCreateHomeToken(join(service.home, "token")).reveal();
  const response = await fetch(`${service.url}/${method}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": `application/connect+${type}` },
    body: new Uint8Array(body),
  });
  const text = await response.text();
  const [, reason = "none"] = /"reason":"([A-Z_]+)"/.exec(text) ?? [];
  return `${reason} ${/"message":"([^"]*)/.exec(text)?.[1] ?? ""}`;
}

/** Client streams, each with the header of a good request. */
const STREAMS: readonly (readonly [DescMethod, object])[] = [
  [FileService.method.writeFile, { sessionId: "neighbour", path: "/workspace/half.txt" }],
  [FileService.method.uploadArchive, { sessionId: "neighbour", path: "/workspace" }],
  [HostService.method.importTemplate, { name: "half" }],
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

/** Sends each of the broken messages first, second, and after data; every one has to be refused by what is wrong with it. */
async function expectRefused(service: Service, method: DescMethod, header: object): Promise<void> {
  const path = `${method.parent.typeName}/${method.name}`;
  const part = (value: object, type: "json" | "proto"): Buffer => {
    const message = create(method.input, { part: value });
    return frame(type === "json" ? Buffer.from(toJsonString(method.input, message)) : toBinary(method.input, message));
  };
  for (const [name, type, broken, named] of BROKEN) {
    const first = part({ case: "header", value: header }, type);
    const data = part({ case: "data", value: Buffer.from("part of it") }, type);
    for (const frames of [[], [first], [first, data, data]]) {
      const answer = await streamed(service, path, type, Buffer.concat([...frames, broken]));
      expect([name, frames.length, answer]).toEqual([name, frames.length, expect.stringMatching(/^INVALID_ARGUMENT /)]);
      expect(answer).toMatch(named);
    }
  }
}

describe("streams whose messages do not decode", () => {
  it.each(STREAMS)(
    "%s of a real host refuses them and changes nothing",
    async (method, header) => {
      const pid = host.pid;
      const before = await files();
      await expectRefused(host, method, header);
      expect(await files()).toBe(before);
      expect(JSON.stringify(await host.call("HostService/ListTemplates"))).not.toContain('"half"');
      expect(host.pid).toBe(pid);
    },
    60_000,
  );

  it("WriteFile names expected_generation in a later message", async () => {
    const header = text(JSON.stringify({ header: { sessionId: "neighbour", path: "/workspace/half.txt" } }));
    const later = text('{"header":{"expected_generation":0.5}}');
    const path = `${FileService.typeName}/WriteFile`;
    expect(await streamed(host, path, "json", Buffer.concat([header, later]))).toMatch(
      /^INVALID_ARGUMENT expected_generation: /,
    );
  });

  it("ImportTemplate of a real fleet refuses them too", async () => {
    await using server = await startServer();
    await expectRefused(server, SandboxControlService.method.importTemplate, { name: "half" });
    expect(JSON.stringify(await server.json("template", "ls"))).not.toContain('"half"');
  }, 120_000);
});
