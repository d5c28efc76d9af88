import { describe, expect, it } from "@jest/globals";
import { FileService } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { maxRequestBytes } from "./method-size.ts";

const MiB = 1024 * 1024;

describe("maxRequestBytes", () => {
  it("is what the proto of a method says, or a quarter of a MiB", () => {
    expect(maxRequestBytes(SessionService.method.getSession)).toBe(MiB / 4);
    expect(maxRequestBytes(SessionService.method.createSession)).toBe(MiB);
    expect(maxRequestBytes(FileService.method.writeFile)).toBe(1.5 * MiB);
    expect(maxRequestBytes(ToolService.method.executeTool)).toBe(6 * MiB);
  });
});
