import { type ClientRequest, type IncomingMessage, request, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Duplex, pipeline } from "node:stream";
import { endToEndHeaders } from "./end-to-end-headers.ts";
import { join, type Joint } from "./join.ts";

/** A request from outside that is passed on to the sandbox. */
export interface PassedRequest {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  /** Whether a header stays with the proxy. */
  readonly isDropped: (name: string) => boolean;
  dial(): Promise<Duplex>;
}

/** A request for another protocol, with what the client has sent after it. */
export interface PassedUpgrade extends Omit<PassedRequest, "response"> {
  readonly socket: Duplex;
  readonly head: Buffer;
  /** Whether the connection may go on; called for every piece that passes. */
  readonly isOpen: () => boolean;
  readonly onJoined: (joint: Joint) => void;
}

const MIN_STATUS = 200;
const MAX_STATUS = 599;
/** Interim answers are not passed on; a server that sends more of them than this sends nothing else. */
const MAX_INTERIM = 16;
/** How long a server inside may take to answer a request for another protocol. */
const UPGRADE_MS = 30_000;

/**
 * Passes a request on to a server inside, and its answer back. The server is agent code: for anything that it sends, the client
 * gets a well-formed answer, a 502, or a connection that ends in the middle of the answer. Never rejects.
 */
export async function passRequest(passed: PassedRequest): Promise<void> {
  const { incoming, response } = passed;
  try {
    const inside = await dialFor(passed, response);
    const headers = onwardHeaders(passed);
    if (incoming.headers["transfer-encoding"] !== undefined) headers.push("transfer-encoding", "chunked");
    const onward = ask(passed, { inside, headers: [...headers, "connection", "close"] });
    passAnswerBack(onward, response, inside);
    onward.on("upgrade", () => {
      inside.destroy();
      sayBadGateway(response);
    });
    incoming.on("error", () => onward.destroy());
    incoming.pipe(onward);
  } catch {
    sayBadGateway(response);
  }
}

/** The same for a request that asks for another protocol: after a 101 the two sides are joined. Never rejects. */
export async function passUpgrade(passed: PassedUpgrade): Promise<void> {
  const { incoming, socket } = passed;
  const response = answerOn(socket as Socket, incoming);
  try {
    const inside = await dialFor(passed, response);
    const headers = [...onwardHeaders(passed), "connection", "upgrade", "upgrade", incoming.headers.upgrade ?? ""];
    const onward = ask(passed, { inside, headers });
    const patience = AbortSignal.timeout(UPGRADE_MS);
    const giveUp = (): void => void onward.destroy();
    patience.addEventListener("abort", giveUp, { once: true });
    onward.on("close", () => {
      patience.removeEventListener("abort", giveUp);
    });
    passAnswerBack(onward, response, inside);
    onward.on("upgrade", (answer, _, head) => {
      patience.removeEventListener("abort", giveUp);
      try {
        switchProtocols(passed, { response, answer, inside, head });
      } catch {
        inside.destroy();
        sayBadGateway(response);
      }
    });
    onward.end();
  } catch {
    sayBadGateway(response);
  }
}

/** The answer to a request whose server no longer owns it and its socket; the socket ends with the answer. */
function answerOn(socket: Socket, incoming: IncomingMessage): ServerResponse {
  const response = new ServerResponse(incoming);
  response.assignSocket(socket);
  response.shouldKeepAlive = false;
  response.on("finish", () => {
    socket.destroySoon();
  });
  socket.on("drain", () => response.emit("drain"));
  return response;
}

/** A connection to the server inside, which ends with the answer, also if the client has left meanwhile. */
async function dialFor({ dial }: Pick<PassedRequest, "dial">, response: ServerResponse): Promise<Duplex> {
  const inside = await dial();
  inside.on("error", () => undefined);
  response.on("error", () => inside.destroy());
  response.on("close", () => inside.destroy());
  if (response.closed || response.destroyed) inside.destroy();
  return inside;
}

function onwardHeaders({ incoming, isDropped }: Pick<PassedRequest, "incoming" | "isDropped">): string[] {
  // The listener has answered `Expect` itself.
  return endToEndHeaders(incoming.rawHeaders, (name) => name === "expect" || isDropped(name));
}

function ask(
  { incoming: { method = "GET", url = "/" } }: Pick<PassedRequest, "incoming">,
  { inside, headers }: { readonly inside: Duplex; readonly headers: readonly string[] },
): ClientRequest {
  return request({ method, path: url, headers, setHost: false, createConnection: () => inside });
}

function passAnswerBack(onward: ClientRequest, response: ServerResponse, inside: Duplex): void {
  const fail = (): void => {
    inside.destroy();
    sayBadGateway(response);
  };
  let interim = 0;
  onward.on("error", fail);
  onward.on("information", ({ statusCode }) => {
    interim += 1;
    // Without the headers that go with it, a 101 switches to nothing.
    if (statusCode === 101 || interim > MAX_INTERIM) fail();
  });
  onward.on("response", (answer) => {
    answer.on("error", () => undefined);
    try {
      const { statusCode = 0, rawHeaders } = answer;
      if (statusCode < MIN_STATUS || statusCode > MAX_STATUS) throw new Error("not a final answer");
      // The reason phrase is left out: no client needs it, and it may be anything.
      response.writeHead(statusCode, endToEndHeaders(rawHeaders));
      // The client gets the headers at once, also if the body takes long or breaks off.
      response.flushHeaders();
      pipeline(answer, response, () => undefined);
    } catch {
      fail();
    }
  });
}

function switchProtocols(
  { socket, head: early, incoming, isOpen, onJoined }: PassedUpgrade,
  switched: {
    readonly response: ServerResponse;
    readonly answer: IncomingMessage;
    readonly inside: Duplex;
    readonly head: Buffer;
  },
): void {
  const { response, answer, inside, head } = switched;
  const protocol = answer.headers.upgrade ?? incoming.headers.upgrade ?? "";
  const headers = [...endToEndHeaders(answer.rawHeaders), "connection", "upgrade", "upgrade", protocol];
  const lines = ["HTTP/1.1 101 Switching Protocols"];
  for (let index = 0; index < headers.length; index += 2) lines.push(`${headers[index]}: ${headers[index + 1]}`);
  response.detachSocket(socket as Socket);
  socket.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  if (head.length > 0) socket.write(head);
  if (early.length > 0) inside.write(early);
  onJoined(join(socket, inside, isOpen));
}

/** Answers with 502. An answer that has begun is cut instead; one that is complete is left as it is. */
export function sayBadGateway(response: ServerResponse): void {
  if (response.writableEnded) return;
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.writeHead(502, { "content-type": "text/plain", connection: "close" });
  response.end("nothing answers on this port of the sandbox\n");
}
