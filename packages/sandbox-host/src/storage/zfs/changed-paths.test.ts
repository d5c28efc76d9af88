import { describe, expect, it } from "@jest/globals";
import { parseDiff } from "./changed-paths.ts";

const MOUNT = "/home/mnt/t1/g1";

describe("parseDiff", () => {
  it("reads changes, both names of a rename, and changes of a link count", () => {
    const stdout = [
      `M\t/\t${MOUNT}/`,
      `+\tF\t${MOUNT}/new`,
      `-\t@\t${MOUNT}/link`,
      `M\tF\t${MOUNT}/hard\t(+1)`,
      `R\tF\t${MOUNT}/old/name\t${MOUNT}/another/name`,
      "",
    ].join("\n");
    expect(parseDiff(stdout, MOUNT)).toEqual(["/", "/another/name", "/hard", "/link", "/new", "/old/name"]);
  });

  it("reads bytes that are written in octal, character by character and together", () => {
    expect(parseDiff(`+\tF\t${MOUNT}/a\\0040b\\0134\\0303\\0244\\00111\n`, MOUNT)).toEqual(["/a b\\ä\t1"]);
  });

  it("counts an attribute to the file that has it", () => {
    expect(parseDiff(`+\tF\t${MOUNT}/a/<xattrdir>/user.x\nM\t/\t${MOUNT}/<xattrdir>\n`, MOUNT)).toEqual(["/", "/a"]);
  });

  it("returns no path if nothing changed", () => {
    expect(parseDiff("", MOUNT)).toEqual([]);
  });

  it.each([
    [`+\tF\t/elsewhere/x`],
    [`+\tF\t${MOUNT}2/x`],
    [`?\tF\t${MOUNT}/x`],
    [`R\tF\t${MOUNT}/x`],
    [`M\tF\t${MOUNT}/x\t${MOUNT}/y`],
    [`M ${MOUNT}/x`],
  ])("returns null for %j", (line) => {
    expect(parseDiff(`+\tF\t${MOUNT}/fine\n${line}\n`, MOUNT)).toBeNull();
  });
});
