import { describe, expect, it } from "@jest/globals";
import { parsePackages } from "./debian.ts";

describe("parsePackages", () => {
  it("takes names separated by commas, each once", () => {
    expect(parsePackages("git, python3-minimal,g++,git")).toEqual(["git", "python3-minimal", "g++"]);
  });

  it.each(["", "git,", "-git", "git;ls", "Git", "git python3"])("refuses %j", (list) => {
    expect(() => parsePackages(list)).toThrow("is not the name of a Debian package");
  });
});
