import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { COMPLETION_SHELLS, completionScript } from "./completion-script.ts";

const isInstalled = (shell: string): boolean => spawnSync(shell, ["-c", "true"]).error === undefined;

/** Bash has to be there; of the others, those that are. */
const SHELLS = COMPLETION_SHELLS.filter((shell) => shell === "bash" || isInstalled(shell));

describe("completionScript", () => {
  it("has a script for each shell, and no further ones", () => {
    const files = readdirSync(new URL("../shell", import.meta.url));
    expect(files.toSorted()).toEqual(COMPLETION_SHELLS.map((shell) => `turnbox.${shell}`).toSorted());
  });

  it.each(SHELLS)("makes a script without errors of syntax for %s", (shell) => {
    const { status, stderr } = spawnSync(shell, ["-n"], {
      input: completionScript(shell, ["up", "create"]),
      encoding: "utf8",
    });
    expect([status, stderr]).toEqual([0, ""]);
  });

  it.each(COMPLETION_SHELLS)("fills the verbs in for %s", (shell) => {
    const script = completionScript(shell, ["up", "create"]);
    expect(script).toContain("up create");
    expect(script).not.toContain("@VERBS@");
  });
});
