import { describe, expect, it } from "@jest/globals";
import type { PermissionOperation } from "../tool-host/permission.ts";
import { createGrants, type GrantSpec } from "./grants.ts";

const GRANT: GrantSpec = { sessionId: "s", decision: "allow-once", kind: "edit", paths: ["/w/a"] };
const WRITE = { sessionId: "s", operation: "fs/write_text_file", path: "/w/a" } as const;
const RUN = { sessionId: "s", operation: "terminal/create", path: "/w" } as const;

const granted = (grant: Partial<GrantSpec>) => {
  const grants = createGrants();
  grants.add({ ...GRANT, ...grant });
  return grants;
};

describe("grants", () => {
  it.each<[string | null, readonly string[], readonly PermissionOperation[]]>([
    ["edit", ["/w/a"], ["fs/write_text_file"]],
    ["edit", [], ["fs/write_text_file"]],
    ["edit", ["/w/b"], []],
    ["delete", ["/w/a"], ["fs/write_text_file"]],
    ["execute", [], ["terminal/create"]],
    ["execute", ["/w/a"], ["terminal/create"]],
    ["other", [], ["fs/write_text_file", "terminal/create"]],
    [null, ["/w/a"], ["fs/write_text_file"]],
    ["read", ["/w/a"], []],
    ["read", [], []],
    ["search", [], []],
    ["think", [], []],
    ["fetch", [], []],
    ["switch_mode", [], []],
  ])("of a call of kind %s at %j covers %j", (kind, paths, covered) => {
    const uses = [WRITE, RUN].filter((wanted) => granted({ kind, paths }).use(wanted));
    expect(uses.map(({ operation }) => operation)).toEqual(covered);
  });

  it("is used up by one use, unless it is for always, and belongs to one session", () => {
    const once = granted({});
    expect([once.use({ ...WRITE, sessionId: "t" }), once.use(WRITE), once.use(WRITE)]).toEqual([false, true, false]);
    const always = granted({ decision: "allow-always" });
    expect([always.use(WRITE), always.use(WRITE)]).toEqual([true, true]);
    for (const decision of ["pending", "reject-once", "reject-always"] as const)
      expect(granted({ decision }).use(WRITE)).toBe(false);
  });

  it("for once ends with its turn", () => {
    const [once, always] = [granted({}), granted({ decision: "allow-always" })];
    for (const grants of [once, always]) grants.endTurn("s");
    expect([once.use(WRITE), always.use(WRITE)]).toEqual([false, true]);
  });
});
