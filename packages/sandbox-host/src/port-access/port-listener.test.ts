import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { type PortListener, startPortListener } from "./port-listener.ts";

interface Answer {
  readonly status: number;
  readonly body: string;
}

const SILENCE_MS = 500;

describe("the address of a port", () => {
  const inside = createServer((incoming, response) => {
    seen.push(incoming);
    incoming.pipe(response.writeHead(200, { "x-inside": "yes" }));
  });
  inside.on("upgrade", (incoming: IncomingMessage, socket: Socket) => {
    seen.push(incoming);
    if (!socket.writable) return;
    socket.write("HTTP/1.1 101 Switching\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n");
    socket.pipe(socket);
  });
  let seen: IncomingMessage[] = [];
  let token = "good";
  let audience: "public" | "holders" = "holders";
  let listener: PortListener;

  beforeEach(async () => {
    seen = [];
    token = "good";
    audience = "holders";
    inside.listen(0, "127.0.0.1");
    await once(inside, "listening");
    const { port } = inside.address() as AddressInfo;
    listener = await startPortListener({
      bindAddress: "127.0.0.1",
      listenPort: 0,
      tls: null,
      dial: () => Promise.resolve(connect(port, "127.0.0.1")),
      isPublic: () => audience === "public",
      isToken: (given) => given === token,
      touch: () => undefined,
      silenceMs: SILENCE_MS,
    });
  });
  afterEach(async () => {
    await listener[Symbol.asyncDispose]();
    inside.closeAllConnections();
    inside.close();
    await once(inside, "close");
  });

  const send = async (headers: Record<string, string>, body = ""): Promise<Answer> => {
    const sending = request({ port: listener.listenPort, path: "/a?b", method: "POST", headers, agent: false });
    sending.end(body);
    const [answer] = (await once(sending, "response")) as [IncomingMessage];
    return { status: answer.statusCode ?? 0, body: await text(answer) };
  };
  /** What comes back for bytes as they are. */
  const raw = async (bytes: string): Promise<string> => {
    const socket = connect(listener.listenPort, "127.0.0.1");
    socket.write(bytes);
    return await text(socket);
  };

  it("passes a request with the token on, whole, and without the token", async () => {
    expect(await send({ authorization: "Bearer good" }, "x".repeat(100_000))).toEqual({
      status: 200,
      body: "x".repeat(100_000),
    });
    expect(seen[0]).toMatchObject({ method: "POST", url: "/a?b" });
    expect(seen[0]?.headers).not.toHaveProperty("authorization");
    await send({ "turnbox-port-token": "good", authorization: "Basic own" });
    expect(seen[1]?.headers).toMatchObject({ authorization: "Basic own" });
    expect(seen[1]?.headers).not.toHaveProperty("turnbox-port-token");
  });

  it("refuses every other request before anything gets to the sandbox (attack 47)", async () => {
    expect((await send({})).status).toBe(401);
    expect((await send({ authorization: "Bearer bad" })).status).toBe(401);
    expect(await raw("GET / HTTP/1.1\r\nhost: a\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n")).toContain(" 401 ");
    expect(seen).toEqual([]);
  });

  it("is no proxy to other hosts (attack 45)", async () => {
    const head = "host: a\r\nturnbox-port-token: good\r\nconnection: close\r\n\r\n";
    expect(await raw(`GET http://169.254.169.254/ HTTP/1.1\r\n${head}`)).toContain(" 400 ");
    expect(await raw(`CONNECT 169.254.169.254:80 HTTP/1.1\r\n${head}`)).not.toContain(" 200 ");
    expect(seen).toEqual([]);
  });

  it("passes web sockets on", async () => {
    const socket = connect(listener.listenPort, "127.0.0.1");
    const head = "host: a\r\nturnbox-port-token: good\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n";
    socket.write(`GET /socket HTTP/1.1\r\n${head}`);
    const [first] = (await once(socket, "data")) as [Buffer];
    expect(first.toString()).toContain("101 Switching");
    socket.write("ping");
    const [second] = (await once(socket, "data")) as [Buffer];
    expect(second.toString()).toBe("ping");
    socket.destroy();
  });

  it("accepts any protocol without a token if the policy makes the port public", async () => {
    audience = "public";
    expect((await send({}, "body")).body).toBe("body");
    expect(await raw("no http at all\r\n\r\n")).toContain("400 Bad Request");
  });

  /** Has the server inside send these bytes to the next request. */
  const answering = async (bytes: string, request?: Record<string, string>): Promise<string> => {
    inside.once("connection", (socket: Socket) => {
      socket.end(bytes, "latin1");
    });
    const more = Object.entries({ connection: "close", ...request }).map(([name, value]) => `${name}: ${value}\r\n`);
    return await raw(`GET / HTTP/1.1\r\nhost: a\r\nturnbox-port-token: good\r\n${more.join("")}\r\n`);
  };

  it.each([
    ["a trailer beside a length", "HTTP/1.1 200 OK\r\nTrailer: x\r\nContent-Length: 2\r\n\r\nok", " 200 OK\r\n"],
    ["a control character in its reason", "HTTP/1.1 200 a\x01b\r\nContent-Length: 2\r\n\r\nok", " 200 OK\r\n"],
    ["a reason of its own", "HTTP/1.1 404 Hello\r\nContent-Length: 0\r\n\r\n", " 404 Not Found\r\n"],
    ["status 099", "HTTP/1.1 099 OK\r\nContent-Length: 0\r\n\r\n", " 502 "],
    ["status 000", "HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n", " 502 "],
    ["status 600", "HTTP/1.1 600 OK\r\nContent-Length: 0\r\n\r\n", " 502 "],
    ["a bad header", "HTTP/1.1 200 OK\r\nx: \x01\r\nContent-Length: 0\r\n\r\n", " 502 "],
    ["headers without an end", `HTTP/1.1 200 OK\r\n${"x: y\r\n".repeat(10_000)}`, " 502 "],
    ["interim answers without an end", "HTTP/1.1 103 x\r\n\r\n".repeat(100), " 502 "],
    [
      "a switch of protocols that was not asked for",
      "HTTP/1.1 101 x\r\nUpgrade: y\r\nConnection: upgrade\r\n\r\n",
      " 502 ",
    ],
    ["a bare 101", "HTTP/1.1 101 x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", " 502 "],
    ["nothing", "", " 502 "],
  ])("survives an answer with %s (F3)", async (_, bytes, expected) => {
    expect((await answering(bytes)).slice(0, 40)).toContain(expected);
    expect(await answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")).toMatch(/ 200 OK[^]*\r\n\r\nok$/);
  });

  it("passes on one answer only, and no headers of the connection inside", async () => {
    const first =
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: max=9\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-End: 1\r\n";
    const answer = await answering(`${first}\r\nokHTTP/1.1 200 OK\r\nX-Second: 1\r\nContent-Length: 2\r\n\r\nno`);
    expect(answer).toMatch(/X-End: 1\r\n/);
    expect(answer).not.toMatch(/x-hop|keep-alive|second/i);
    expect(answer.endsWith("\r\n\r\nok")).toBe(true);
  });

  it("frames the body of a request itself, also if headers of the connection claim otherwise", async () => {
    const head =
      "host: a\r\nturnbox-port-token: good\r\nconnection: close, content-length\r\ntrailer: x\r\nte: trailers\r\n";
    const body = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    expect(await raw(`GET /a HTTP/1.1\r\n${head}content-length: ${String(body.length)}\r\n\r\n${body}`)).toContain(
      body,
    );
    const chunk = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    expect(await raw(`GET /b HTTP/1.1\r\n${head}transfer-encoding: chunked\r\n\r\n${chunk}`)).toContain(body);
    expect(seen.map(({ url }) => url)).toEqual(["/a", "/b"]);
    for (const { headers } of seen) expect(Object.keys(headers)).not.toEqual(expect.arrayContaining(["trailer"]));
  });

  it("answers a request for another protocol that the server inside does not speak, and then ends the connection", async () => {
    const upgrade = { connection: "upgrade", upgrade: "echo" };
    const body = "x".repeat(500_000);
    const answer = await answering(`HTTP/1.1 200 a\x01\r\nContent-Length: 500000\r\n\r\n${body}`, upgrade);
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(answer.endsWith(`\r\n\r\n${body}`)).toBe(true);
    expect(await answering("HTTP/1.1 101 x\r\n\r\n", upgrade)).toContain(" 502 ");
    expect(await answering("", upgrade)).toContain(" 502 ");
  });

  it("cuts what was joined when its token or its audience ends, also if nothing passes", async () => {
    const upgrade = "host: a\r\nturnbox-port-token: good\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n";
    const open = async (): Promise<Socket> => {
      const socket = connect(listener.listenPort, "127.0.0.1");
      socket.write(`GET / HTTP/1.1\r\n${upgrade}`);
      await once(socket, "data");
      return socket;
    };
    const silent = await open();
    listener.checkOpen();
    silent.write("still");
    expect(String(((await once(silent, "data")) as [Buffer])[0])).toBe("still");
    token = "other";
    listener.checkOpen();
    await once(silent, "close");
    token = "good";
    const talking = await open();
    token = "other";
    talking.write("more");
    expect(await text(talking)).toBe("");
    audience = "public";
    const tunnel = await open();
    audience = "holders";
    listener.checkOpen();
    await once(tunnel, "close");
  });

  it("ends a connection whose headers come too slowly (F26)", async () => {
    const socket = connect(listener.listenPort, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write("GET / HTTP/1.1\r\n");
    const drip = setInterval(() => socket.write("x"), SILENCE_MS / 10);
    await once(socket, "close");
    clearInterval(drip);
  });

  it("reports that a port has no listener", async () => {
    inside.close();
    await once(inside, "close");
    expect((await send({ authorization: "Bearer good" })).status).toBe(502);
    inside.listen(0);
    await once(inside, "listening");
  });
});
