import { describe, expect, it } from "@jest/globals";
import { parseArguments, UsageError } from "./arguments.ts";

describe("the arguments of a benchmark", () => {
  it("mean a full run of all rows where there are none", () => {
    expect(parseArguments([])).toEqual({
      only: undefined,
      jsonPath: undefined,
      size: "full",
      action: "measure",
      publish: false,
    });
  });

  it("choose rows, size and files", () => {
    const parsed = parseArguments(["--only", "^exec", "--quick", "--json", "out.json", "--publish"]);
    expect(parsed).toEqual({ only: /^exec/, jsonPath: "out.json", size: "quick", action: "measure", publish: true });
    expect(parseArguments(["--rows"]).action).toBe("list");
    expect(parseArguments(["--help"]).action).toBe("help");
  });

  it.each([[["--fast"]], [["stray"]], [["--only"]], [["--only", "("]]])(
    "are refused where they are wrong: %j",
    (args) => {
      expect(() => parseArguments(args)).toThrow(UsageError);
    },
  );
});
