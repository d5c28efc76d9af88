import { join } from "node:path";
import { Readable } from "node:stream";
import { describe, expect } from "@jest/globals";
import { randomToken } from "@turnbox/core";
import type { Storage } from "../storage.ts";
import {
  announced,
  newBase,
  newSession,
  receiveAll,
  receiveBases,
  refOf,
  sealed,
  sendAll,
  type Sent,
  type StreamFixture,
  streamOf,
  streamsOf,
  stuckAfter,
} from "./stream-fixture.suite.ts";
import { call, expectReason, MIB, test, writeNoise } from "./suite-fixture.suite.ts";

/** What does not arrive, and leaves nothing. */
export function streamDamageSuite(suite: StreamFixture): void {
  /** Two snapshots of which the second is of some size, and a session there that has the first. */
  const begun = async (): Promise<{ readonly token: string; readonly sent: readonly [Sent, Sent] }> => {
    const { here, there } = suite;
    const head = await newSession(here, ["s1"]);
    await writeNoise(join(head.path, "noise"), MIB);
    await sealed(here, head, "s2");
    const [first, second] = await sendAll(here, head.token);
    const sent = [first!, second!] as const;
    await receiveBases(here, there, sent);
    const { token } = await receiveAll(there, [first!]);
    return { token, sent };
  };
  const expectNothingLeft = async ({ token, sent }: Awaited<ReturnType<typeof begun>>): Promise<void> => {
    const { there } = suite;
    const [found] = (await there.inventory(call)).filter((session) => session.token === token);
    expect([found?.heads.length, found?.snapshots]).toEqual([1, [announced(token, sent[0]).name]]);
    await streamsOf(there).receive(announced(token, sent[1]), streamOf(sent[1].bytes), call);
    expect(await there.listSnapshots(token, call)).toHaveLength(2);
  };

  describe("a stream that", () => {
    test("ends early is refused wherever it ends, and leaves nothing", async () => {
      const session = await begun();
      const { bytes } = session.sent[1];
      const ends = [0, 5, 12, 200, 700, 5000, Math.floor(bytes.length / 2), bytes.length - 320, bytes.length - 1];
      for (const end of ends) {
        const cut = streamOf(bytes.subarray(0, end));
        await expectReason(
          streamsOf(suite.there).receive(announced(session.token, session.sent[1]), cut, call),
          "STREAM_DAMAGED",
        );
      }
      await expectNothingLeft(session);
    });

    test("has one bit flipped is refused wherever it is, and leaves nothing", async () => {
      const session = await begun();
      const { bytes } = session.sent[1];
      const places = [0, 9, 13, 20, 60, 400, 900, Math.floor(bytes.length / 2), bytes.length - 300, bytes.length - 3];
      for (const place of places) {
        const flipped = Buffer.from(bytes);
        flipped[place]! ^= 0x10;
        await expectReason(
          streamsOf(suite.there).receive(announced(session.token, session.sent[1]), streamOf(flipped), call),
          "STREAM_DAMAGED",
        );
      }
      await expectNothingLeft(session);
    });

    test("is of something else, or has something after its end, is refused", async () => {
      const session = await begun();
      const [first, second] = session.sent;
      const foreign = [
        Buffer.from("nothing of ours ".repeat(100)),
        first.bytes,
        Buffer.concat([second.bytes.subarray(0, 40_000), second.bytes.subarray(50_000)]),
        Buffer.concat([second.bytes, Buffer.alloc(100)]),
      ];
      for (const bytes of foreign) {
        await streamsOf(suite.there)
          .receive(announced(session.token, second), streamOf(bytes), call)
          .then(
            () => expect("received").toBe("refused"),
            (thrown: unknown) => {
              expect(thrown).toMatchObject({ reason: "STREAM_DAMAGED" });
            },
          );
      }
      await expectNothingLeft(session);
    });

    test("breaks off by a failure of its source is refused", async () => {
      const session = await begun();
      const { bytes } = session.sent[1];
      const broken = Readable.from(
        (function* () {
          yield bytes.subarray(0, 100_000);
          throw new Error("the connection is gone");
        })(),
        { objectMode: false },
      );
      await expectReason(
        streamsOf(suite.there).receive(announced(session.token, session.sent[1]), broken, call),
        "STREAM_DAMAGED",
      );
      await expectNothingLeft(session);
    });

    test("says nothing more fails after a time, and leaves nothing", async () => {
      const session = await begun();
      const stuck = stuckAfter(session.sent[1].bytes, 300_000);
      await expectReason(
        streamsOf(suite.there).receive(announced(session.token, session.sent[1]), stuck, call),
        "STORAGE_UNAVAILABLE",
      );
      expect(stuck.destroyed).toBe(true);
      await expectNothingLeft(session);
    });

    test("is given up in the middle leaves nothing", async () => {
      const session = await begun();
      const stuck = stuckAfter(session.sent[1].bytes, 300_000);
      const leave = new AbortController();
      const receiving = streamsOf(suite.there).receive(announced(session.token, session.sent[1]), stuck, {
        signal: leave.signal,
      });
      await untilRead(stuck);
      leave.abort();
      await expectReason(receiving, "CANCELLED");
      await expectNothingLeft(session);
    });
  });

  describe("a snapshot", () => {
    test("whose parent is not there, or is another one, is refused", async () => {
      const { here, there } = suite;
      const session = await begun();
      const [, second] = session.sent;
      const other = await newSession(here, ["s1"]);
      const elsewhere = await receiveAllFrom(here, there, other.token);
      const receive = (wanted: ReturnType<typeof announced>): Promise<void> =>
        streamsOf(there).receive(wanted, streamOf(second.bytes), call);
      await expectReason(receive(announced(elsewhere, second)), "SNAPSHOT_NOT_FOUND");
      await expectReason(receive({ ...announced(session.token, second), parentGuid: null }), "STREAM_DAMAGED");
      const wrong = { ...announced(session.token, second), guid: "123456789" };
      await expectReason(receive(wrong), "STREAM_DAMAGED");
      await expectReason(receive({ ...wrong, guid: "x" }), "INVALID_ARGUMENT");
      await expectReason(receive(announced(randomToken(12), second)), "SESSION_NOT_FOUND");
      await expectNothingLeft(session);
    });

    test("is not sent if it, its parent or its base is not there", async () => {
      const { here } = suite;
      const head = await newSession(here, ["s1", "s2"]);
      const streams = streamsOf(here);
      const [, second] = await streams.chain(head.token, call);
      await expectReason(streams.send(refOf(head, "no"), null, call), "SNAPSHOT_NOT_FOUND");
      const wrong = { ...second!.parent!, guid: "12345" };
      await expectReason(streams.send(refOf(head, "s2"), wrong, call), "SNAPSHOT_NOT_FOUND");
      const base = { ...(await newBase(here)), digest: "ab" };
      await expectReason(streams.sendBase(base, call), "TEMPLATE_NOT_FOUND");
      expect(await streams.baseGuid(base, call)).toBeUndefined();
      await expectReason(streams.chain(randomToken(12), call), "SESSION_NOT_FOUND");
    });
  });

  if (suite.options.quota === "enforced") {
    test("what does not fit into the session's outer quota is refused, and leaves nothing", async () => {
      const { here, there } = suite;
      const head = await newSession(here, ["s1"]);
      await writeNoise(join(head.path, "noise"), 12 * MIB);
      await sealed(here, head, "s2");
      const [first, second] = await sendAll(here, head.token);
      await receiveBases(here, there, [first!, second!]);
      const token = randomToken(12);
      await streamsOf(there).beginSession({ token, refquotaBytes: 2 * MIB, marks: {} }, call);
      await streamsOf(there).receive(announced(token, first!), streamOf(first!.bytes), call);
      await expectReason(
        streamsOf(there).receive(announced(token, second!), streamOf(second!.bytes), call),
        "SNAPSHOT_SPACE_EXHAUSTED",
      );
      expect(await there.listSnapshots(token, call)).toHaveLength(1);
      await there.destroySession(token, call);
    });
  }
}

async function receiveAllFrom(from: Storage, to: Storage, token: string): Promise<string> {
  const sent = await sendAll(from, token);
  await receiveBases(from, to, sent);
  return (await receiveAll(to, sent)).token;
}

/** Until all that was written to it has been taken. */
async function untilRead(stream: Readable): Promise<void> {
  while (stream.readableLength > 0) await new Promise((resolve) => setImmediate(resolve));
}
