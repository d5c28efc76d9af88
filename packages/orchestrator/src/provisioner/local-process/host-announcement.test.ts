import { describe, expect, it } from "@jest/globals";
import { parseHostAnnouncement } from "./host-announcement.ts";

describe("parseHostAnnouncement", () => {
  it("reads where a ready host is", () => {
    expect(parseHostAnnouncement('{"event":"ready","url":"http://127.0.0.1:41234","pid":123}')).toEqual({
      kind: "ready",
      url: "http://127.0.0.1:41234",
      pid: 123,
      heartbeat: "none",
    });
    const beating = '{"event":"ready","url":"http://127.0.0.1:41234","pid":123,"heartbeat":"given"}';
    expect(parseHostAnnouncement(beating)).toMatchObject({ heartbeat: "given" });
  });

  it("reads why a host cannot be, with its own remedy", () => {
    const line = '{"event":"failed","reason":"RUNTIME_UNAVAILABLE","message":"no runsc","remedy":"install it"}';
    expect(parseHostAnnouncement(line)).toMatchObject({
      kind: "failed",
      error: { reason: "RUNTIME_UNAVAILABLE", message: "no runsc", metadata: { remedy: "install it" } },
    });
  });

  it("keeps the message of a reason that only a newer host knows", () => {
    expect(parseHostAnnouncement('{"event":"failed","reason":"TOMORROW","message":"m"}')).toMatchObject({
      error: { reason: "HOST_UNREACHABLE", message: "m" },
    });
  });

  it.each([
    "",
    "hello",
    "null",
    "[]",
    '{"event":"ready"}',
    '{"event":"ready","url":"nowhere","pid":1}',
    '{"event":"ready","url":"http://a","pid":"1"}',
  ])("takes %j for a failure of the host", (line) => {
    expect(parseHostAnnouncement(line)).toMatchObject({ kind: "failed", error: { reason: "HOST_UNREACHABLE" } });
  });
});
