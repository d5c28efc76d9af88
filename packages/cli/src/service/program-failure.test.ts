import { describe, expect, it } from "@jest/globals";
import { ERROR_TABLE } from "@turnbox/core";
import { parseProgramFailure } from "./program-failure.ts";

describe("parseProgramFailure", () => {
  it("takes reason, message and the program's own remedy, and not the table's", () => {
    const stderr = "noise\nPORT_IN_USE: 7700 is taken\nremedy: choose another\n    at frame\n";
    const error = parseProgramFailure(stderr, "?");
    expect(error).toMatchObject({ reason: "PORT_IN_USE", message: "7700 is taken" });
    expect(error.metadata).toEqual({ remedy: "choose another" });
    const usual = `COMMAND_OUTCOME_UNKNOWN: zpool hangs\nremedy: ${ERROR_TABLE.COMMAND_OUTCOME_UNKNOWN.remedy}\n`;
    expect(parseProgramFailure(usual, "?").metadata).toEqual({});
    expect(parseProgramFailure("noise", "no words")).toMatchObject({ reason: "INTERNAL", message: "no words" });
  });
});
