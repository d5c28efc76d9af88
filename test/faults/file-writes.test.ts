import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { fromConnectError } from "@turnbox/rpc/wire";
import { fileClient, uploadOf } from "../support/file-client.ts";
import { type FileRoom, openFileRoom } from "../support/file-room.ts";
import { poll } from "../support/process.ts";

let room: FileRoom;
beforeAll(async () => {
  room = await openFileRoom();
}, 120_000);
afterAll(async () => {
  await room[Symbol.asyncDispose]();
}, 120_000);

/** A write that has sent a part of its body and waits with the rest. */
function halting(path: string) {
  const { sessionId } = room;
  const rest = Promise.withResolvers<undefined>();
  async function* body() {
    yield { part: { case: "header", value: { sessionId, path } } as const };
    yield { part: { case: "data", value: new Uint8Array(100_000) } as const };
    await rest.promise;
  }
  const reason = fileClient(room.host)
    .writeFile(body())
    .then(
      () => "done",
      (thrown: unknown) => fromConnectError(thrown).reason,
    );
  return {
    reason,
    end: () => {
      rest.resolve(undefined);
    },
  };
}

const workspace = (): string => join(room.root(), "workspace");
const temporaries = (): readonly string[] => readdirSync(workspace()).filter((name) => name.endsWith(".tmp"));
const aTemporary = (): Promise<string> => poll("the write to begin", () => temporaries()[0]);

describe("a write that is cut off", () => {
  it("by the death of its host leaves the old content and nothing else", async () => {
    const { host, agent } = room;
    await agent("echo old > target");
    const cut = halting("target");
    await aTemporary();
    await host.kill();
    cut.end();
    await cut.reason;
    await poll("the worker to take back what it began", () => (temporaries().length === 0 ? true : undefined));
    expect(readFileSync(join(workspace(), "target"), "utf8")).toBe("old\n");
    await host.start();
    expect(await agent("cat target; ls -A | grep -c tmp || true")).toBe("old\n0\n");
  }, 120_000);

  it("by the death of its worker leaves what the next write in the directory takes away", async () => {
    const { agent, sessionId, host } = room;
    const cut = halting("target");
    // Its name tells whose it is.
    const left = await aTemporary();
    process.kill(Number.parseInt(left.slice(9, 17), 16), "SIGKILL");
    cut.end();
    expect(await cut.reason).not.toBe("done");
    expect(temporaries()).toEqual([left]);
    await fileClient(host).writeFile(uploadOf({ sessionId, path: "another" }, Buffer.from("new")));
    expect(temporaries()).toEqual([]);
    expect(await agent("cat target another")).toBe("old\nnew");
  }, 120_000);
});
