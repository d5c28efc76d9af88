import { execFile } from "node:child_process";
import { createWriteStream } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { readFrames } from "../../stream-frames.ts";
import type { ChainLink } from "../../streams.ts";
import { call, createNamedHome, DEADLINE_MS, zfs } from "../named-home.suite.ts";

const run = promisify(execFile);

/** A home with a session of two snapshots, and an empty one that they are received into. */
async function createReceiver() {
  const home = await createNamedHome();
  const { storage, head, pool } = home;
  const streams = storage.streams!;
  await storage.seal(head, "s1", {}, call);
  await writeFile(join(head.path, "more"), "x");
  await storage.seal(head, "s2", {}, call);
  await streams.beginSession({ token: "t9", marks: {} }, call);
  const [first, second] = (await streams.chain("t1", call)) as [ChainLink, ChainLink];
  const bytesOf = async ({ name, parent }: ChainLink): Promise<Buffer> =>
    await buffer(await streams.send({ token: "t1", name }, parent, call));
  return {
    ...home,
    streams,
    links: [first, second] as const,
    receive: async (link: ChainLink): Promise<void> => {
      const { guid, parent } = link;
      const wanted = { token: "t9", name: `c${link.name}`, guid, parentGuid: parent?.guid ?? null } as const;
      const stream = Readable.from([await bytesOf(link)], { objectMode: false });
      await streams.receive({ ...wanted, marks: { of: link.name }, format: "zfs" }, stream, call);
    },
    /** As a service that dies right after the last byte leaves it: nothing has a mark. */
    receiveBare: async (link: ChainLink, target: string): Promise<void> => {
      const path = join(home.home, "bare");
      await pipeline(readFrames(Readable.from([await bytesOf(link)], { objectMode: false })), createWriteStream(path));
      await zfs("set", `turnbox:receiving=${target.split("@")[0] ?? ""}`, `${pool}/agents/t9`);
      await run("sh", ["-c", 'zfs receive -u "$0" < "$1"', `${pool}/agents/t9/${target}`, path]);
    },
  };
}

describe("receive", () => {
  it(
    "goes on from what a service that died has received and not marked",
    async () => {
      await using home = await createReceiver();
      const { storage, links, receiveBare, receive } = home;
      await receiveBare(links[0], "g1@cs1");
      expect(await storage.listSnapshots("t9", call)).toEqual([]);
      await receive(links[0]);
      expect(await storage.listSnapshots("t9", call)).toMatchObject([{ name: "cs1", marks: { of: "s1" } }]);
      await receive(links[1]);
      expect(await storage.listSnapshots("t9", call)).toMatchObject([{ generation: 1 }, { generation: 1 }]);
    },
    DEADLINE_MS,
  );

  it(
    "removes what such a service has left of something else",
    async () => {
      await using home = await createReceiver();
      const { links, receiveBare, receive, listed } = home;
      await receiveBare({ ...links[1], parent: null }, "g1@cs2");
      await receive(links[0]);
      expect((await listed()).filter((name) => name.startsWith("/agents/t9/"))).toEqual([
        "/agents/t9/g2",
        "/agents/t9/g2@cs1",
      ]);
    },
    DEADLINE_MS,
  );

  it(
    "leaves a session that is destroyed with it, and none with a dataset that is not ours",
    async () => {
      await using home = await createReceiver();
      const { storage, pool, links, receiveBare } = home;
      await receiveBare(links[0], "g1@cs1");
      await zfs("create", "-o", "canmount=off", "-o", "mountpoint=none", `${pool}/agents/t9/g5`);
      await expect(storage.destroySession("t9", call)).rejects.toMatchObject({ reason: "STORAGE_UNAVAILABLE" });
      await zfs("destroy", `${pool}/agents/t9/g5`);
      await storage.destroySession("t9", call);
      expect((await storage.inventory(call)).map(({ token }) => token)).toEqual(["t1"]);
    },
    DEADLINE_MS,
  );

  it(
    "mounts nothing, and closes what it has made to writing, devices and set-user bits",
    async () => {
      await using home = await createReceiver();
      const { pool, links, receive } = home;
      await receive(links[0]);
      const properties = "canmount,readonly,setuid,devices,mounted";
      const shown = await zfs("get", "-H", "-o", "value", properties, `${pool}/agents/t9/g1`);
      expect(shown.trim().split("\n")).toEqual(["noauto", "on", "off", "off", "no"]);
      expect(await readFile("/proc/self/mountinfo", "utf8")).not.toContain("/t9/");
    },
    DEADLINE_MS,
  );
});
