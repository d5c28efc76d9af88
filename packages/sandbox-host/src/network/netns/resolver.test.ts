import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createManualClock, type ManualClock } from "@turnbox/core/testing";
import packet from "dns-packet";
import { NetworkBounds } from "../../network-policy/bounds.ts";
import { DENY_ALL, parsePolicy, type PolicyInForce } from "../../network-policy/policy.ts";
import { MAX_BURST, MAX_IN_FLIGHT, MAX_PER_SECOND } from "./asker-limits.ts";
import { type NameAddress, type Resolver, startResolver } from "./resolver.ts";

const ADDRESS = "93.184.216.34";
const policyOf = (allowList: readonly string[], privateRanges: readonly string[] = []): PolicyInForce => ({
  ...parsePolicy({ ...DENY_ALL, allowOutbound: true, allowList }),
  bounds: new NetworkBounds({ privateRanges, allowMetadata: false }),
});

describe("the resolver of sandboxes", () => {
  let resolver: Resolver;
  let asked: string[];
  let refused: string[];
  let pinned: (readonly NameAddress[])[];
  let known: boolean;
  let policy: PolicyInForce;
  let answers: readonly NameAddress[];
  let lookingUp: Promise<unknown>;
  let clock: ManualClock;

  beforeEach(async () => {
    [asked, refused, pinned, known] = [[], [], [], true];
    policy = policyOf(["*.example.org"]);
    answers = [{ address: ADDRESS, ttl: 100_000 }];
    clock = createManualClock();
    lookingUp = Promise.resolve();
    resolver = await startResolver({
      address: "127.0.0.1",
      clock,
      lookUp: async (name) => {
        asked.push(name);
        await lookingUp;
        return answers;
      },
      askerOf: () => (known ? { policy, pin, refused: (name) => void refused.push(name) } : undefined),
    });
  });
  afterEach(async () => {
    await resolver[Symbol.asyncDispose]();
  });

  const pin = (_: string, addresses: readonly NameAddress[]): Promise<void> => {
    pinned.push(addresses);
    return Promise.resolve();
  };
  const query = (name: string, type: "A" | "AAAA" | "TXT" = "A"): Buffer =>
    packet.encode({ type: "query", id: 7, flags: packet.RECURSION_DESIRED, questions: [{ type, name }] });

  /** Sends all messages and reads the answer to the last. */
  const ask = async (...messages: readonly Buffer[]) => {
    const socket = createSocket("udp4");
    try {
      for (const message of messages) socket.send(message, resolver.ports.udp, "127.0.0.1");
      const [reply] = (await once(socket, "message")) as [Buffer];
      const { id, rcode, answers: found } = packet.decode(reply) as packet.DecodedPacket & { readonly rcode: string };
      return { id, rcode, found: found?.map((entry) => ("data" in entry ? entry.data : "")) };
    } finally {
      socket.close();
    }
  };

  it("answers an allowed name with a bounded lifetime, after it has opened the address", async () => {
    expect(await ask(query("Git.Example.org"))).toEqual({ id: 7, rcode: "NOERROR", found: [ADDRESS] });
    expect(pinned).toEqual([[{ address: ADDRESS, ttl: 300 }]]);
    expect(asked).toEqual(["git.example.org"]);
  });

  it("passes on no other names and no other questions (attack 43)", async () => {
    expect((await ask(query("git.evil.com"))).rcode).toBe("NXDOMAIN");
    expect((await ask(query("x.example.org", "TXT"))).rcode).toBe("NOTIMP");
    expect(await ask(query("x.example.org", "AAAA"))).toMatchObject({ rcode: "NOERROR", found: [] });
    expect(asked).toEqual([]);
    expect(refused).toEqual(["git.evil.com"]);
  });

  it("leaves inward addresses out of an answer (attack 44)", async () => {
    answers = ["169.254.169.254", ADDRESS, "10.0.0.1", "127.0.0.1"].map((address) => ({ address, ttl: 1 }));
    expect((await ask(query("a.example.org"))).found).toEqual([ADDRESS]);
    expect(pinned).toEqual([[{ address: ADDRESS, ttl: 1 }]]);
    expect(refused).toHaveLength(3);
  });

  it("answers with a private address only if the operator has opened it and the list names it (attack 44)", async () => {
    answers = ["169.254.169.254", "10.0.0.1", "10.1.0.1"].map((address) => ({ address, ttl: 1 }));
    const listed = ["*.example.org", "10.0.0.0/8", "169.254.169.254/32"];
    policy = policyOf(listed);
    expect((await ask(query("a.example.org"))).rcode).toBe("NXDOMAIN");
    policy = policyOf(["*.example.org", "0.0.0.0/0"], ["10.1.0.0/16"]);
    expect((await ask(query("a.example.org"))).rcode).toBe("NXDOMAIN");
    policy = policyOf(listed, ["10.1.0.0/16", "169.254.0.0/16"]);
    expect((await ask(query("a.example.org"))).found).toEqual(["10.1.0.1"]);
    expect(pinned).toEqual([[{ address: "10.1.0.1", ttl: 1 }]]);
  });

  it("gives no answer to garbage and goes on", async () => {
    const garbage = Array.from({ length: 200 }, (_, size) => randomBytes(size));
    const answered = packet.encode({ type: "response", id: 1, questions: [{ type: "A", name: "a.example.org" }] });
    expect((await ask(...garbage, Buffer.alloc(4000), answered, query("a.example.org"))).rcode).toBe("NOERROR");
  });

  it("speaks TCP, in pieces too, and ends a connection that is not DNS", async () => {
    const socket = connect(resolver.ports.tcp, "127.0.0.1");
    const message = query("a.example.org");
    const framed = Buffer.concat([Buffer.from([0, message.length]), message]);
    socket.write(framed.subarray(0, 5));
    socket.write(framed.subarray(5));
    const [reply] = (await once(socket, "data")) as [Buffer];
    expect(packet.decode(reply.subarray(2)).answers).toHaveLength(1);
    socket.write(Buffer.from([0xff, 0xff, 1]));
    await once(socket, "close");
  });

  it("gives no answer to unknown sources", async () => {
    known = false;
    const socket = connect(resolver.ports.tcp, "127.0.0.1");
    const message = query("a.example.org");
    socket.write(Buffer.concat([Buffer.from([0, message.length]), message]));
    await once(socket, "close");
    expect(asked).toEqual([]);
  });

  /** Sends a message so often without waiting for an answer, and then a plain one that is answered at once. */
  const flood = async (message: Buffer, times: number): Promise<readonly Buffer[]> => {
    const socket = createSocket("udp4");
    const replies: Buffer[] = [];
    socket.on("message", (reply: Buffer) => replies.push(reply));
    for (let sent = 0; sent < times; sent += 1) {
      await new Promise((resolve) => socket.send(message, resolver.ports.udp, "127.0.0.1", resolve));
      // The socket's buffer is small: what overflows it never reaches the resolver.
      if (sent % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    for (let before = -1; before < replies.length + asked.length; ) {
      before = replies.length + asked.length;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    socket.close();
    return replies;
  };

  it("ends while names are looked up, and sends nothing after that (F4)", async () => {
    const slow = Promise.withResolvers<undefined>();
    lookingUp = slow.promise;
    const socket = createSocket("udp4");
    const replies: Buffer[] = [];
    socket.on("message", (reply: Buffer) => replies.push(reply));
    socket.send(query("a.example.org"), resolver.ports.udp, "127.0.0.1");
    const line = connect(resolver.ports.tcp, "127.0.0.1");
    line.on("error", () => undefined);
    const message = query("b.example.org");
    line.write(Buffer.concat([Buffer.from([0, message.length]), message]));
    while (asked.length < 2) await new Promise((resolve) => setImmediate(resolve));
    await resolver[Symbol.asyncDispose]();
    slow.resolve(undefined);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect([replies, pinned]).toEqual([[], []]);
    socket.close();
    resolver = await startResolver({
      address: "127.0.0.1",
      clock,
      lookUp: () => lookingUp.then(() => []),
      askerOf: () => undefined,
    });
  });

  it("looks up a bounded number of names of one sandbox at a time (F17)", async () => {
    const slow = Promise.withResolvers<undefined>();
    lookingUp = slow.promise;
    await flood(query("a.example.org"), 200);
    expect(asked).toHaveLength(MAX_IN_FLIGHT);
    slow.resolve(undefined);
    lookingUp = Promise.resolve();
    expect((await ask(query("a.example.org"))).rcode).toBe("NOERROR");
  });

  it("answers a bounded number of questions of one sandbox in a second (F17)", async () => {
    await flood(query("git.evil.com"), MAX_BURST + 300);
    expect(refused.length).toBeLessThanOrEqual(MAX_BURST);
    const before = refused.length;
    await clock.advance(1000);
    await flood(query("git.evil.com"), MAX_BURST);
    expect(refused.length - before).toBeLessThanOrEqual(MAX_PER_SECOND + MAX_BURST - before);
    await clock.advance(1000);
    expect((await ask(query("a.example.org"))).rcode).toBe("NOERROR");
  });
});
