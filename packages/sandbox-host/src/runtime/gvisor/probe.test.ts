import { describe, expect, it } from "@jest/globals";
import { checkRoot } from "./probe.ts";

describe("checkRoot", () => {
  it("refuses every user but root, and names the user", () => {
    expect(() => {
      checkRoot(65_534);
    }).toThrow("it needs root, and this process runs as uid 65534");
    expect(() => {
      checkRoot(0);
    }).not.toThrow();
  });
});
