import { once } from "node:events";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { describe, expect } from "@jest/globals";
import type { Head } from "../storage.ts";
import {
  announced,
  newBase,
  newSession,
  receiveAll,
  receiveBases,
  refOf,
  sealed,
  sendAll,
  type StreamFixture,
  streamOf,
  streamsOf,
  stuckAfter,
} from "./stream-fixture.suite.ts";
import { call, eventually, expectReason, MIB, test, writeNoise } from "./suite-fixture.suite.ts";

/** What else may happen while a stream is under way. */
export function streamDuringSuite(suite: StreamFixture): void {
  /** A session whose second snapshot is being sent, and is not read. */
  const beingSent = async (): Promise<{ readonly head: Head; readonly stream: Readable }> => {
    const { here } = suite;
    const head = await newSession(here, ["s1"]);
    await writeNoise(join(head.path, "noise"), 4 * MIB);
    await sealed(here, head, "s2");
    const [, second] = await streamsOf(here).chain(head.token, call);
    return { head, stream: await streamsOf(here).send(refOf(head, "s2"), second?.parent ?? null, call) };
  };

  describe("while a snapshot is sent", () => {
    test("seals go on, and what is sent does not change", async () => {
      const { here, there } = suite;
      const { head, stream } = await beingSent();
      await sealed(here, head, "s3");
      const copy = here.createHead(
        { token: head.token, generation: 2, origin: { kind: "snapshot", snapshot: refOf(head, "s1") }, marks: {} },
        call,
      );
      await copy;
      const bytes = await buffer(stream);
      const sent = await sendAll(here, head.token);
      await receiveBases(here, there, sent);
      const { token } = await receiveAll(there, [sent[0]!, { ...sent[1]!, bytes }]);
      expect(await there.listSnapshots(token, call)).toHaveLength(2);
    });

    test("neither it nor its parent can go, nor the session, until it is over", async () => {
      const { here } = suite;
      const { head, stream } = await beingSent();
      await here.unmountHead(head, call);
      for (const name of ["s1", "s2"])
        await expectReason(here.destroySnapshot(refOf(head, name), call), "SNAPSHOT_IN_USE");
      await expectReason(here.destroyHead(head, call), "SNAPSHOT_IN_USE");
      await expectReason(here.destroySession(head.token, call), "SNAPSHOT_IN_USE");
      await here.shrinkSession(head.token, call);
      expect(await here.listSnapshots(head.token, call)).toHaveLength(2);
      await buffer(stream);
      await eventually(() => here.destroySnapshot(refOf(head, "s2"), call));
      await here.destroySession(head.token, call);
    });

    test("no head is collected that it hangs on", async () => {
      const { here } = suite;
      const { head, stream } = await beingSent();
      const origin = { kind: "snapshot", snapshot: refOf(head, "s2") } as const;
      const next = await here.createHead({ token: head.token, generation: 2, origin, marks: {} }, call);
      await here.unmountHead(head, call);
      expect(await here.collectHeads(next, call)).toEqual([]);
      stream.destroy();
      await eventually(async () => {
        expect(await here.collectHeads(next, call)).toEqual([{ token: head.token, generation: 1 }]);
      });
    });

    test("a reader that leaves ends the sender", async () => {
      const { here } = suite;
      const { head, stream } = await beingSent();
      stream.destroy();
      await eventually(() => here.destroySnapshot(refOf(head, "s2"), call));
    });

    test("a reader that stops loses the stream after a time", async () => {
      const { here } = suite;
      const { head, stream } = await beingSent();
      const [thrown] = (await once(stream, "error")) as [unknown];
      expect(thrown).toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      await eventually(() => here.destroySnapshot(refOf(head, "s2"), call));
    });

    test("a caller that gives up ends it", async () => {
      const { here } = suite;
      const head = await newSession(here, ["s1"]);
      await writeNoise(join(head.path, "noise"), 4 * MIB);
      await sealed(here, head, "s2");
      const leave = new AbortController();
      const stream = await streamsOf(here).send(refOf(head, "s2"), null, { signal: leave.signal });
      leave.abort();
      await expectReason(buffer(stream), "CANCELLED");
      await eventually(() => here.destroySession(head.token, call));
    });

    test("its base cannot go", async () => {
      const { here } = suite;
      const base = await newBase(here, { large: "0123456789abcdef".repeat(256 * 1024) });
      const { stream } = await streamsOf(here).sendBase(base, call);
      await expectReason(here.destroyBase(base, call), "TEMPLATE_IN_USE");
      stream.destroy();
      await eventually(() => here.destroyBase(base, call));
    });
  });

  describe("while a snapshot is received", () => {
    test("other sessions are not kept waiting, and its own is destroyed once it was given up", async () => {
      const { here, there } = suite;
      const { head, stream } = await beingSent();
      stream.destroy();
      const sent = await sendAll(here, head.token);
      await receiveBases(here, there, sent);
      const { token } = await receiveAll(there, sent.slice(0, 1));
      const leave = new AbortController();
      const stuck = stuckAfter(sent[1]!.bytes, MIB);
      const receiving = streamsOf(there).receive(announced(token, sent[1]!), stuck, { signal: leave.signal });
      const received = expectReason(receiving, "CANCELLED");
      await newSession(there, ["other"]);
      const destroying = there.destroySession(token, call);
      leave.abort();
      await Promise.all([received, destroying]);
      expect((await there.inventory(call)).map((session) => session.token)).not.toContain(token);
    });

    test("several sessions are received at once", async () => {
      const { here, there } = suite;
      const heads = [await newSession(here, ["s1", "s2"]), await newSession(here, ["s1", "s2"])];
      const sent = await Promise.all(heads.map(({ token }) => sendAll(here, token)));
      for (const one of sent) await receiveBases(here, there, one);
      const copies = await Promise.all([...sent, ...sent].map((one) => receiveAll(there, one)));
      for (const { token } of copies) expect(await there.listSnapshots(token, call)).toHaveLength(2);
      await streamsOf(there).beginSession({ token: copies[0]!.token, marks: {} }, call);
      const again = announced(copies[0]!.token, sent[0]![0]!);
      await streamsOf(there).receive(again, streamOf(sent[0]![0]!.bytes), call);
    });
  });
}
