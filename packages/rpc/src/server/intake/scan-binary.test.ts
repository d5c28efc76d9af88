import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { CreateSessionRequestSchema, ListSessionsRequestSchema } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { ExecuteToolRequestSchema } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { fromConnectError } from "../../wire/connect-error.ts";
import { scanBinary } from "./scan-binary.ts";
import { MAX_DEPTH, MAX_VALUES } from "./scan-limits.ts";

const refusalOf = (bytes: Uint8Array, schema: Parameters<typeof scanBinary>[0] = ExecuteToolRequestSchema): string => {
  try {
    scanBinary(schema, bytes);
  } catch (thrown) {
    return fromConnectError(thrown).message;
  }
  throw new Error("it was let in");
};

const varint = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]);
const field = (number: number, payload: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([(number << 3) | 2, ...varint(payload.length)]), payload]);

const CALL = create(ExecuteToolRequestSchema, {
  sessionId: "s",
  toolCallId: "ü",
  toolName: "write_file",
  params: { path: "a", list: [1, "two", null, { three: true }], content: "x".repeat(10_000) },
  expectedGeneration: 3,
  limits: { timeout: { seconds: 5n, nanos: 1 }, memoryBytes: 2n ** 40n },
  stdin: new Uint8Array([0xff, 0xfe]),
});

describe("scanBinary", () => {
  it("passes what the parser takes, and counts its fields", () => {
    expect(scanBinary(ExecuteToolRequestSchema, toBinary(ExecuteToolRequestSchema, CALL))).toBeGreaterThan(20);
    const session = create(CreateSessionRequestSchema, { env: { A: "1" }, labels: { b: "2" }, ports: [1, 70_000] });
    expect(scanBinary(CreateSessionRequestSchema, toBinary(CreateSessionRequestSchema, session))).toBeGreaterThan(5);
    expect(scanBinary(ListSessionsRequestSchema, new Uint8Array(0))).toBe(0);
  });

  it("refuses, at every length, what is cut off, and takes nothing that the parser refuses", () => {
    const whole = toBinary(ExecuteToolRequestSchema, CALL);
    for (let length = 0; length < 200; length += 1) {
      const part = whole.subarray(0, length);
      try {
        scanBinary(ExecuteToolRequestSchema, part);
      } catch {
        continue;
      }
      expect(fromBinary(ExecuteToolRequestSchema, part)).toBeDefined();
    }
    expect(refusalOf(whole.subarray(0, whole.length - 1))).toMatch(/^stdin: does not decode/);
  });

  it("names the field that does not decode", () => {
    const cases: readonly (readonly [string, Uint8Array])[] = [
      ["session_id: does not decode: is not UTF-8", field(1, Buffer.from([0xff]))],
      ["tool_name: does not decode: has the wire type 0", Buffer.from([3 << 3, 1])],
      ["session_id: does not decode: is longer than what holds it", Buffer.from([(1 << 3) | 2, 5, 65])],
      ["expected_generation: does not decode: is cut off", Buffer.from([5 << 3, 0x80])],
      [
        "expected_generation: does not decode: has a number of more than 10 bytes",
        Buffer.from([5 << 3, ...Buffer.alloc(11, 0x80)]),
      ],
      ["fields: does not decode: is not UTF-8", field(4, field(1, field(1, Buffer.from([0xc0]))))],
      ["request: does not decode: has a field without a number", Buffer.from([0])],
      ["request: does not decode: has the wire type 3", Buffer.from([((99 << 3) & 0x7f) | 0x80 | 3, 6])],
    ];
    for (const [message, bytes] of cases) expect(refusalOf(bytes)).toBe(message);
  });

  it("refuses more values than a request may have: empty ones, unknown ones, packed ones", () => {
    const rule = `request: must have at most ${MAX_VALUES} values`;
    const empty = Buffer.alloc(2 * MAX_VALUES, Buffer.from([0x0a, 0]));
    expect(refusalOf(field(4, field(1, field(2, field(6, empty)))))).toBe(rule);
    expect(refusalOf(Buffer.alloc(2 * MAX_VALUES + 2, Buffer.from([0x78, 1])))).toBe(rule);
    expect(refusalOf(field(12, Buffer.alloc(MAX_VALUES)), CreateSessionRequestSchema)).toBe(rule);
  });

  it("refuses what lies too deep", () => {
    let nested: Buffer = Buffer.alloc(0);
    for (let depth = 0; depth < 2 * MAX_DEPTH; depth += 1) nested = field(1, field(6, nested));
    expect(refusalOf(field(4, field(1, field(2, field(6, nested)))))).toBe(
      `request: must be nested at most ${MAX_DEPTH} deep`,
    );
  });
});
