import { connect, type IncomingHttpHeaders } from "node:http2";
import { gzipSync } from "node:zlib";
import { create, toBinary, toJsonString } from "@bufbuild/protobuf";
import { Code, type ConnectRouter } from "@connectrpc/connect";
import { describe, expect, it } from "@jest/globals";
import { FileService, WriteFileRequestSchema } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { SandboxError, systemClock } from "@turnbox/core";
import { createAdmission, DEFAULT_ADMISSION_LIMITS } from "../admission/admission.ts";
import { access, startServer, until } from "../listen-fixture.suite.ts";

const MiB = 1024 * 1024;

interface Answer {
  readonly requestId?: string | undefined;
  readonly reason: string;
  readonly message: string;
}

async function post(url: string, method: string, body: Uint8Array, headers: Record<string, string>): Promise<Answer> {
  const response = await fetch(`${url}/turnbox.host.v1.${method}`, {
    method: "POST",
    headers: { authorization: `Bearer ${access.homeToken.reveal()}`, ...headers },
    body: new Uint8Array(body),
  });
  const text = Buffer.from(await response.arrayBuffer()).toString("latin1");
  return {
    requestId: /"requestId":"([^"]*)"/.exec(text)?.[1],
    reason: /"reason":"([A-Z_]+)"/.exec(text)?.[1] ?? "none",
    message: /"message":"([^"]*)/.exec(text)?.[1] ?? "",
  };
}

const JSON_TYPE = { "content-type": "application/json" };

/** Handlers that keep what they read until they are let go, and hand failures of their stream on as the file service does. */
function holding() {
  const gate = Promise.withResolvers<void>();
  let running = 0;
  const routes = (router: ConnectRouter): void => {
    router.service(SessionService, { getSession: ({ sessionId }) => ({ session: { sessionId } }) });
    router.service(ToolService, {
      executeTool: async ({ toolCallId }) => {
        running += 1;
        await gate.promise;
        return { toolCallId };
      },
    });
    router.service(FileService, {
      writeFile: async (parts) => {
        try {
          for await (const part of parts) expect(part).toBeDefined();
          return {};
        } catch (thrown) {
          throw SandboxError.from(thrown);
        }
      },
    });
  };
  return { gate, routes, running: () => running };
}

describe("the size of requests", () => {
  it("is what the method takes, also after decompression, and refused with its limit", async () => {
    await using started = await startServer();
    const { url } = started.server;
    const body = (bytes: number): Buffer => Buffer.from(JSON.stringify({ sessionId: "x".repeat(bytes) }));
    const rule = "request: must have at most 262144 bytes in GetSession";
    expect((await post(url, "SessionService/GetSession", body(200 * 1024), JSON_TYPE)).reason).toBe("none");
    const large = body(300 * 1024);
    const tooLarge = { reason: "INVALID_ARGUMENT", message: rule };
    const named = await post(url, "SessionService/GetSession", large, { ...JSON_TYPE, "x-request-id": "mine" });
    expect(named.requestId).toBe("mine");
    expect(await post(url, "SessionService/GetSession", large, JSON_TYPE)).toMatchObject(tooLarge);
    for (const bytes of [300 * 1024, 8 * MiB]) {
      const bomb = gzipSync(body(bytes));
      const headers = { ...JSON_TYPE, "content-encoding": "gzip" };
      expect(await post(url, "SessionService/GetSession", bomb, headers)).toMatchObject(tooLarge);
    }
    expect(started.admission.heldBytes).toBe(0);
  });

  it("is not made longer than an address by compression", async () => {
    await using started = await startServer();
    const message = gzipSync(Buffer.from(`{"x":[1${",1".repeat(MiB)}]}`)).toString("base64url");
    const query = `connect=v1&encoding=json&compression=gzip&base64=1&message=${message}`;
    const response = await fetch(`${started.server.url}/turnbox.host.v1.SessionService/GetSession?${query}`, {
      headers: { authorization: `Bearer ${access.homeToken.reveal()}` },
    });
    expect([response.status, await response.text()]).toEqual([400, expect.stringContaining("compression: must be")]);
  });

  it("is refused if its values would take more memory than its bytes, in JSON and in binary", async () => {
    await using started = await startServer();
    const values = Buffer.from(`{"toolName":"x","params":{"a":[1${",1".repeat(MiB)}]}}`);
    const fields = Buffer.alloc(2 * MiB, Buffer.from([0x78, 1]));
    for (const [body, type] of [
      [values, "json"],
      [fields, "proto"],
    ] as const) {
      const answer = await post(started.server.url, "ToolService/ExecuteTool", body, {
        "content-type": `application/${type}`,
      });
      expect(answer).toMatchObject({ reason: "INVALID_ARGUMENT", message: "request: must have at most 100000 values" });
    }
  });

  it("counts to its caller until the call is over; what is small is never refused for it", async () => {
    const { gate, routes, running } = holding();
    const limits = { ...DEFAULT_ADMISSION_LIMITS, maxRequestBytesPerCaller: 4 * MiB };
    const admission = createAdmission(limits, systemClock);
    await using started = await startServer({ rpc: { routes, admission } });
    const { url } = started.server;
    const text = Buffer.from(JSON.stringify({ toolCallId: "c", toolName: "x".repeat(1.5 * MiB) }));
    const execute = async () => await post(url, "ToolService/ExecuteTool", text, JSON_TYPE);
    const first = [execute(), execute()];
    await until(() => running() === 2);
    expect(admission.heldBytes).toBeGreaterThan(3 * MiB);
    expect(await execute()).toMatchObject({ reason: "OVERLOADED" });
    const small = Buffer.from(JSON.stringify({ sessionId: "s" }));
    expect((await post(url, "SessionService/GetSession", small, JSON_TYPE)).reason).toBe("none");
    gate.resolve();
    expect(await Promise.all(first)).toMatchObject([{ reason: "none" }, { reason: "none" }]);
    await until(() => admission.heldBytes === 0);
  });

  it("lets a stream whose later message has no room wait for it", async () => {
    const { gate, routes, running } = holding();
    const limits = { ...DEFAULT_ADMISSION_LIMITS, maxRequestBytesPerCaller: 2 * MiB };
    const admission = createAdmission(limits, systemClock);
    await using started = await startServer({ rpc: { routes, admission } });
    const { url } = started.server;
    const text = Buffer.from(JSON.stringify({ toolCallId: "c", toolName: "x".repeat(1.5 * MiB) }));
    const held = post(url, "ToolService/ExecuteTool", text, JSON_TYPE);
    await until(() => running() === 1);
    const data = frame(
      toBinary(
        WriteFileRequestSchema,
        create(WriteFileRequestSchema, { part: { case: "data", value: new Uint8Array(MiB) } }),
      ),
    );
    const type = { "content-type": "application/connect+proto" };
    let answered = false;
    const writing = post(url, "FileService/WriteFile", Buffer.concat([frame(HEADER.binary), data, data]), type);
    void writing.then(() => {
      answered = true;
    });
    await until(() => admission.inFlight.stream === 1);
    // Answers to what comes later show that it had its time.
    const small = Buffer.from(JSON.stringify({ sessionId: "s" }));
    for (let count = 0; count < 10; count += 1) await post(url, "SessionService/GetSession", small, JSON_TYPE);
    expect(answered).toBe(false);
    gate.resolve();
    expect([(await held).reason, (await writing).reason]).toEqual(["none", "none"]);
    await until(() => admission.heldBytes === 0);
  });
});

const header = create(WriteFileRequestSchema, { part: { case: "header", value: { sessionId: "s", path: "a" } } });
const HEADER = {
  binary: toBinary(WriteFileRequestSchema, header),
  json: Buffer.from(toJsonString(WriteFileRequestSchema, header)),
};

function frame(message: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags, 0);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** Frames that do not decode, and what their refusal names. */
const BROKEN: readonly (readonly [string, "json" | "binary", Buffer, RegExp])[] = [
  [
    "a number that is none",
    "json",
    frame(Buffer.from('{"header":{"expectedGeneration":0.5}}')),
    /^expected_generation: /,
  ],
  ["a field of another kind", "json", frame(Buffer.from('{"header":{"path":{}}}')), /^path: /],
  ["no base64", "json", frame(Buffer.from('{"data":"%"}')), /^data: /],
  ["no JSON", "json", frame(Buffer.from("{")), /WriteFileRequest/],
  ["a text that is no UTF-8", "binary", frame(Buffer.from([0x0a, 3, 0x12, 1, 0xff])), /^session_id: |^path: |UTF-8/],
  ["a field that is cut off", "binary", frame(Buffer.from([0x0a, 9, 0x12])), /^header: /],
  ["a wrong wire type", "binary", frame(Buffer.from([0x10, 1])), /^data: /],
  ["an envelope that is cut off", "json", frame(Buffer.from("{}")).subarray(0, 6), /envelope/],
  ["a head that is cut off", "binary", Buffer.from([0, 0, 0]), /envelope/],
  ["unknown flags", "json", frame(Buffer.from("{}"), 0x42), /flags 66/],
  ["the flag of an end", "binary", frame(Buffer.from("{}"), 2), /flags 2/],
  ["compression that is not named", "binary", frame(gzipSync("{}"), 1), /compress/],
  ["a length beyond the limit", "binary", Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1]), /1572864 bytes in WriteFile/],
];

describe("a message of a stream that does not decode", () => {
  const outcomes = async (type: string, headers: Record<string, string>, body: Buffer): Promise<Answer> => {
    const { routes } = holding();
    await using started = await startServer({ rpc: { routes } });
    const answer = await post(started.server.url, "FileService/WriteFile", body, { "content-type": type, ...headers });
    await until(() => started.admission.heldBytes === 0 && started.admission.inFlight.stream === 0);
    return answer;
  };

  it.each(BROKEN)("is a refusal that names what is wrong, first and later: %s", async (_name, form, broken, named) => {
    const type = `application/connect+${form === "json" ? "json" : "proto"}`;
    for (const before of [Buffer.alloc(0), frame(HEADER[form])]) {
      const answer = await outcomes(type, {}, Buffer.concat([before, broken]));
      expect(answer.reason).toBe("INVALID_ARGUMENT");
      expect(answer.message).toMatch(named);
    }
  });

  it("is a refusal if its compression is not what it says", async () => {
    const named = { "connect-content-encoding": "gzip" };
    const cut = gzipSync(HEADER.json).subarray(0, 12);
    for (const packed of [Buffer.from("garbage"), cut]) {
      const answer = await outcomes(
        "application/connect+json",
        named,
        Buffer.concat([frame(HEADER.json), frame(packed, 1)]),
      );
      expect(answer).toMatchObject({ reason: "INVALID_ARGUMENT", message: expect.stringContaining("gzip") });
    }
    const whole = Buffer.concat([frame(gzipSync(HEADER.json), 1), frame(Buffer.alloc(0), 1)]);
    expect((await outcomes("application/connect+json", named, whole)).reason).not.toBe("INTERNAL");
  });

  it("is a refusal in calls of one message too, also in gRPC", async () => {
    await using started = await startServer();
    const { url } = started.server;
    const method = "SessionService/GetSession";
    const binary = await post(url, method, Buffer.from([0x0a, 9]), { "content-type": "application/proto" });
    expect(binary).toMatchObject({
      reason: "INVALID_ARGUMENT",
      message: expect.stringMatching(/^session_id: /),
    });
    const gzip = { ...JSON_TYPE, "content-encoding": "gzip" };
    expect((await post(url, method, Buffer.from("garbage"), gzip)).reason).toBe("INVALID_ARGUMENT");
    const session = connect(url);
    const call = session.request({
      ":method": "POST",
      ":path": `/turnbox.host.v1.${method}`,
      "content-type": "application/grpc+proto",
      authorization: `Bearer ${access.homeToken.reveal()}`,
    });
    const status = new Promise((resolve) => {
      call.once("trailers", (trailers: IncomingHttpHeaders) => resolve(trailers["grpc-status"]));
    });
    call.end(frame(Buffer.from([0x0a, 9])));
    call.resume();
    expect(await status).toBe(String(Code.InvalidArgument));
    session.destroy();
  });
});
