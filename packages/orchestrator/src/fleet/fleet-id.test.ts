import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { formatFleetId, parseFleetId } from "./fleet-id.ts";

const refusal = (raw: string): SandboxError => {
  try {
    parseFleetId(raw);
  } catch (error) {
    if (error instanceof SandboxError) return error;
    throw error;
  }
  throw new Error(`${raw} was accepted`);
};

describe("fleet ids", () => {
  it("come back as they went", () => {
    const id = { instanceId: "i-0abc_1", sessionId: "s_1-x" };
    expect(formatFleetId(id)).toBe("fleet:i-0abc_1:s_1-x");
    expect(parseFleetId(formatFleetId(id))).toEqual(id);
  });

  it.each([
    ["another adapter's prefix", "direct:i-1:s"],
    ["no prefix", "s1"],
    ["nothing", ""],
    ["an empty instance", "fleet::s"],
    ["an empty session", "fleet:i:"],
    ["a missing part", "fleet:i"],
    ["a colon too many", "fleet:i:s:t"],
    ["a session with a way up", "fleet:i:a..b"],
    ["a session that begins with a hyphen", "fleet:i:-s"],
    ["a path", "fleet:i:../x"],
    ["a newline", "fleet:i:s\n"],
  ])("refuse %s and name the field", (_what, raw) => {
    expect(refusal(raw)).toMatchObject({ reason: "INVALID_ARGUMENT", metadata: { field: "sandbox_id" } });
  });

  it("are never made from an instance with a colon", () => {
    expect(() => formatFleetId({ instanceId: "a:b", sessionId: "s" })).toThrow("instance");
    expect(() => formatFleetId({ instanceId: "", sessionId: "s" })).toThrow("instance_id");
  });
});
