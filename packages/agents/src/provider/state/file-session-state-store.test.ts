import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createMemorySessionStateStore } from "../fake/memory-session-state-store.suite.ts";
import { createFileSessionStateStore } from "./file-session-state-store.ts";
import { describeSessionStateStore, recordOf } from "./session-state-store.suite.ts";

describeSessionStateStore("the store of sessions in memory", createMemorySessionStateStore);
describeSessionStateStore("the store of sessions in files", () => {
  const directory = mkdtempSync(join(tmpdir(), "turnbox-state-"));
  return { ...createFileSessionStateStore(directory), [Symbol.dispose]: () => rmSync(directory, { recursive: true }) };
});

describe("the files of sessions", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "turnbox-state-"));
  });
  afterEach(() => {
    rmSync(directory, { recursive: true });
  });

  it("are for their owner only, whole, versioned, and without drafts beside them", async () => {
    const inner = join(directory, "sessions");
    const store = createFileSessionStateStore(inner);
    await store.save(recordOf("one"));
    await store.save(recordOf("one"));
    expect(readdirSync(inner)).toEqual(["one.session.json"]);
    expect(statSync(join(inner, "one.session.json")).mode & 0o777).toBe(0o600);
    expect(statSync(inner).mode & 0o777).toBe(0o700);
    expect(JSON.parse(readFileSync(join(inner, "one.session.json"), "utf8"))).toMatchObject({ version: 1 });
  });

  it("say why, where they cannot be written", async () => {
    const store = createFileSessionStateStore(join(directory, "sessions"));
    rmSync(join(directory, "sessions"), { recursive: true });
    await expect(store.save(recordOf("one"))).rejects.toMatchObject({
      reason: "INTERNAL",
      message: "a session's state could not be written: ENOENT",
    });
    await expect(store.load("one", { signal: AbortSignal.abort() })).rejects.toMatchObject({ reason: "CANCELLED" });
  });

  it.each(["../one", "a/b", "", ".hidden", "a\nb"])("are not made for the session id %j", async (sessionId) => {
    const store = createFileSessionStateStore(directory);
    await expect(store.save(recordOf(sessionId))).rejects.toMatchObject({ metadata: { field: "sessionId" } });
    expect(readdirSync(directory)).toEqual([]);
  });

  it.each([
    ["of another version", '{"version":2,"session":{}}', /version 2/],
    ["cut short", '{"version":1,', /no JSON/],
    ["of another kind", '{"version":1,"session":{"sessionId":"bad"}}', /not what a session's state looks like/],
  ])("that are %s are refused by name, and do not hide the others", async (_kind, text, message) => {
    const store = createFileSessionStateStore(directory);
    await store.save(recordOf("good"));
    writeFileSync(join(directory, "bad.session.json"), text);
    await expect(store.load("bad")).rejects.toThrow(message);
    await expect(store.list()).rejects.toMatchObject({ reason: "CONFIG_INVALID" });
    const unreadable: string[] = [];
    const list = await store.list({ onUnreadable: (error) => void unreadable.push(error.message) });
    expect(list.map(({ sessionId }) => sessionId)).toEqual(["good"]);
    expect(unreadable).toEqual([expect.stringMatching(message)]);
  });
});
