import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "@jest/globals";
import { SandboxControlService } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { createSubjectReader, sessionPart } from "./request-subject.ts";

describe("createSubjectReader", () => {
  it("reads the session at the top of a request", () => {
    const { getSession } = SessionService.method;
    const read = createSubjectReader(getSession);
    expect(read(create(getSession.input, { sessionId: "s1" }))).toEqual({ sessionId: "s1" });
    expect(read(create(getSession.input))).toEqual({});
  });

  it("reads the session inside of a call and of an upload's header, and none in its data", () => {
    const { executeToolStream } = ToolService.method;
    const readCall = createSubjectReader(executeToolStream);
    expect(readCall(create(executeToolStream.input, { call: { sessionId: "s1" } }))).toEqual({ sessionId: "s1" });
    expect(readCall(create(executeToolStream.input))).toEqual({});
    const { writeFile } = FileService.method;
    const readPart = createSubjectReader(writeFile);
    expect(readPart(create(writeFile.input, { part: { case: "header", value: { sessionId: "s1" } } }))).toEqual({
      sessionId: "s1",
    });
    expect(readPart(create(writeFile.input, { part: { case: "data", value: new Uint8Array(3) } }))).toEqual({});
  });

  it("reads the session part of a fleet's sandbox id", () => {
    const { getSandbox } = SandboxControlService.method;
    const read = createSubjectReader(getSandbox);
    expect(read(create(getSandbox.input, { sandboxId: "fleet:i-1:s1" }))).toEqual({ sessionId: "s1" });
    expect(read(create(getSandbox.input, { sandboxId: "s1" }))).toEqual({ sessionId: "s1" });
  });
});

describe("sessionPart", () => {
  it.each(["fleet:a:b:s1", "fleet::s1", "fleet:s1", "other:a:s1", "xfleet:a:s1", "fleet:a:"])(
    "does not find s1 in %s",
    (id) => {
      expect(sessionPart(id)).toBe(id);
    },
  );
});
