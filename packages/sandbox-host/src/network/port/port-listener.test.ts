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

describe("the address of a port", () => {
  const inside = createServer((incoming, response) => {
    seen.push(incoming);
    incoming.pipe(response.writeHead(200, { "x-inside": "yes" }));
  });
  inside.on("upgrade", (incoming: IncomingMessage, socket: Socket) => {
    seen.push(incoming);
    socket.write("HTTP/1.1 101 Switching\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n");
    socket.pipe(socket);
  });
  let seen: IncomingMessage[] = [];
  let audience: "public" | "holders" = "holders";
  let listener: PortListener;

  beforeEach(async () => {
    seen = [];
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
      isToken: (token) => token === "good",
      touch: () => undefined,
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

  it("refuses everybody else before anything reaches the sandbox (attack 47)", async () => {
    expect((await send({})).status).toBe(401);
    expect((await send({ authorization: "Bearer bad" })).status).toBe(401);
    expect(await raw("GET / HTTP/1.1\r\nhost: a\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n")).toContain(" 401 ");
    expect(seen).toEqual([]);
  });

  it("is no proxy to other places (attack 45)", async () => {
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

  it("lets anybody in where the policy says so, whatever they speak", async () => {
    audience = "public";
    expect((await send({}, "body")).body).toBe("body");
    expect(await raw("no http at all\r\n\r\n")).toContain("400 Bad Request");
  });

  it("tells of a port where nobody listens", async () => {
    inside.close();
    await once(inside, "close");
    expect((await send({ authorization: "Bearer good" })).status).toBe(502);
    inside.listen(0);
    await once(inside, "listening");
  });
});
