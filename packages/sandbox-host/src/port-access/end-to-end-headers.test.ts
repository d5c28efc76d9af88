import { describe, expect, it } from "@jest/globals";
import { endToEndHeaders } from "./end-to-end-headers.ts";

describe("the headers that a proxy passes on", () => {
  it("are those of the message, as they are and in their order", () => {
    const raw = ["X-A", "1", "Set-Cookie", "a=b", "set-cookie", "c=d", "Content-Length", "5"];
    expect(endToEndHeaders(raw)).toEqual(raw);
  });

  it("are without those of the connection, those that it names, and any of proxies", () => {
    const ofConnection = [
      "Keep-Alive",
      "TE",
      "Trailer",
      "Transfer-Encoding",
      "Upgrade",
      "Proxy-Authorization",
      "Proxy-X",
    ];
    const raw = [
      ...ofConnection.flatMap((name) => [name, "v"]),
      "Connection",
      "close, X-Hop",
      "x-hop",
      "1",
      "X-End",
      "1",
    ];
    expect(endToEndHeaders(raw)).toEqual(["X-End", "1"]);
  });

  it("keep the length of the body, also if the message names it as one of the connection", () => {
    expect(endToEndHeaders(["Connection", "content-length", "Content-Length", "5"])).toEqual(["Content-Length", "5"]);
  });

  it("are without those that stay with the proxy", () => {
    expect(endToEndHeaders(["Token", "t", "X", "1"], (name) => name === "token")).toEqual(["X", "1"]);
  });

  it.each([
    ["a b", "1"],
    ["x", "\u0001"],
    ["x", "a\nb"],
    ["", "1"],
  ])("are refused if one may not be sent: %j", (...raw) => {
    expect(() => endToEndHeaders(raw)).toThrow();
  });
});
