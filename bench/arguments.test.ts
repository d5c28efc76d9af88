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
      profile: undefined,
    });
  });

  it("choose rows, size and files", () => {
    const parsed = parseArguments(["--only", "^exec", "--quick", "--json", "out.json", "--publish"]);
    expect(parsed).toEqual({
      only: /^exec/,
      jsonPath: "out.json",
      size: "quick",
      action: "measure",
      publish: true,
      profile: undefined,
    });
    expect(parseArguments(["--rows"]).action).toBe("list");
    expect(parseArguments(["--help"]).action).toBe("help");
  });

  it("ask for a picture of one row instead", () => {
    const parsed = parseArguments(["--only", "^exec", "--profile", "a.svg", "--seconds", "3", "--of", "../old"]);
    expect(parsed.action).toBe("profile");
    expect(parsed.profile).toEqual({ svgPath: "a.svg", repository: "../old", seconds: 3 });
    expect(parseArguments(["--profile", "a.svg"]).profile).toMatchObject({ repository: undefined });
    expect(() => parseArguments(["--profile", "a.svg", "--seconds", "soon"])).toThrow(UsageError);
  });

  it.each([[["--fast"]], [["stray"]], [["--only"]], [["--only", "("]]])(
    "are refused where they are wrong: %j",
    (args) => {
      expect(() => parseArguments(args)).toThrow(UsageError);
    },
  );
});
