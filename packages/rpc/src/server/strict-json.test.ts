import http2 from "node:http2";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { describe, expect, it } from "@jest/globals";
import { fromConnectError } from "../wire/connect-error.ts";
import { access, startServer } from "./listen-fixture.suite.ts";

const PATH = "/turnbox.host.v1.SessionService/GetSession";
const authorization = `Bearer ${access.homeToken.reveal()}`;

const sessionOf = (text: string): Buffer => Buffer.from(`{"sessionId":"${text}"}`, "latin1");

describe.each([
  ["Connect", askByConnect],
  ["gRPC", askByGrpc],
])("JSON over %s", (_name, ask) => {
  it.each([
    ["a high half alone", "\\ud800"],
    ["a low half alone", "a\\udc00b"],
    ["halves in the wrong order", "\\udc00\\ud800"],
    ["two high halves", "\\ud83d\\ud83d\\ude00"],
    ["bytes that are not UTF-8", "\xff\xfe"],
  ])("is refused with %s", async (_what, text) => {
    await using started = await startServer();
    expect(await ask(started.server.url, sessionOf(text))).toBe("INVALID_ARGUMENT");
  });

  it("is refused where a message quotes what was wrong in it", async () => {
    await using started = await startServer();
    expect(await ask(started.server.url, Buffer.from('"\\ud800"'))).toBe("INVALID_ARGUMENT");
  });

  it.each(["\\ud83d\\ude00", "\\\\ud800", "\\u00e9\\n", "\\uD83D\\uDE00 \\\\\\\\uDC00"])(
    "is taken with %s, which is a text",
    async (text) => {
      await using started = await startServer();
      expect(await ask(started.server.url, sessionOf(text))).toBe("answered");
    },
  );
});

async function askByConnect(url: string, body: Buffer): Promise<string> {
  const headers = { "content-type": "application/json", authorization };
  const response = await fetch(`${url}${PATH}`, { method: "POST", headers, body: new Uint8Array(body) });
  const json = (await response.json()) as { readonly details?: { readonly debug?: { readonly reason?: string } }[] };
  return response.ok ? "answered" : (json.details?.[0]?.debug?.reason ?? "no reason");
}

async function askByGrpc(url: string, body: Buffer): Promise<string> {
  const session = http2.connect(url);
  try {
    return await new Promise<string>((resolve) => {
      const headers = { "content-type": "application/grpc+json", te: "trailers", authorization };
      const stream = session.request({ ":method": "POST", ":path": PATH, ...headers });
      stream.on("trailers", (fields: http2.IncomingHttpHeaders) => {
        const error = findTrailerError(new Headers(Object.entries(fields) as [string, string][]));
        resolve(error === undefined ? "answered" : fromConnectError(error).reason);
      });
      stream.on("error", () => undefined);
      stream.on("close", () => {
        resolve("no answer");
      });
      stream.resume();
      const head = Buffer.alloc(5);
      head.writeUInt32BE(body.length, 1);
      stream.end(Buffer.concat([head, body]));
    });
  } finally {
    session.destroy();
  }
}
