import { describe, expect, it } from "@jest/globals";
import { authorize, authorizeMethod, type MethodFacts } from "./authorize.ts";
import { ACCESS_VERBS, coversTenant, type Principal } from "./principal.ts";

const HOME: Principal = { kind: "home", tenant: "default", verbs: ACCESS_VERBS };
const scoped = (changes: Partial<Principal> = {}): Principal => ({
  kind: "scoped",
  tenant: "acme",
  verbs: ACCESS_VERBS,
  ...changes,
});
const facts = (changes: Partial<MethodFacts> = {}): MethodFacts => ({
  verb: "execute",
  lane: "normal",
  scope: "session",
  ...changes,
});

const answer = (call: () => void): string => {
  try {
    call();
    return "allowed";
  } catch (thrown) {
    expect(thrown).toMatchObject({ reason: "PERMISSION_DENIED" });
    return (thrown as Error).message;
  }
};

describe("authorize", () => {
  it("lets a token bound to a sandbox act on that one with its verbs", () => {
    const principal = scoped({ sandbox: "s1", verbs: ["execute"] });
    expect(answer(() => authorize(principal, facts(), { sessionId: "s1" }))).toBe("allowed");
    expect(answer(() => authorize(principal, facts({ verb: "files" }), { sessionId: "s1" }))).toContain("files");
  });

  it("gives one answer for a sibling, whether it exists or is not named at all (attack 58)", () => {
    const principal = scoped({ sandbox: "s1" });
    const sibling = answer(() => authorize(principal, facts(), { sessionId: "s2" }));
    const absent = answer(() => authorize(principal, facts(), { sessionId: "no-such-session" }));
    const unnamed = answer(() => authorize(principal, facts(), {}));
    expect(new Set([sibling, absent, unnamed])).toEqual(new Set(["the token does not cover this sandbox"]));
  });

  it("keeps a sandbox's token from the tenant's and the host's methods (attack 59)", () => {
    const principal = scoped({ sandbox: "s1" });
    expect(answer(() => authorize(principal, facts({ scope: "tenant" }), { sessionId: "s1" }))).toContain("bound");
    expect(answer(() => authorize(principal, facts({ scope: "host" }), {}))).toContain("host");
    expect(answer(() => authorize(principal, facts({ scope: "host", verb: "admin" }), {}))).toContain("host");
    expect(answer(() => authorize(scoped({ tenant: "*", sandbox: "s1" }), facts({ scope: "host" }), {}))).toContain(
      "host",
    );
    expect(answer(() => authorize(principal, facts({ scope: "none", verb: "read" }), {}))).toBe("allowed");
  });

  it("keeps a tenant's token from the host, and lets the fleet's own token in", () => {
    expect(answer(() => authorize(scoped(), facts({ scope: "host", verb: "admin" }), {}))).toContain("host");
    expect(answer(() => authorize(scoped({ tenant: "*" }), facts({ scope: "host", verb: "admin" }), {}))).toBe(
      "allowed",
    );
    expect(answer(() => authorize(scoped(), facts({ scope: "tenant" }), {}))).toBe("allowed");
    expect(answer(() => authorize(scoped(), facts(), { sessionId: "any" }))).toBe("allowed");
  });

  it("refuses a method whose proto says nothing, even to the home (fail closed)", () => {
    expect(answer(() => authorizeMethod(HOME, facts({ verb: undefined })))).toContain("does not say");
  });

  it("lets the home do everything else", () => {
    for (const verb of ACCESS_VERBS) {
      for (const scope of ["session", "tenant", "host", "none"] as const) {
        expect(answer(() => authorize(HOME, facts({ verb, scope }), {}))).toBe("allowed");
      }
    }
  });
});

describe("coversTenant", () => {
  it("shows a tenant its own things only, the home and the fleet everybody's", () => {
    expect(coversTenant(scoped(), "acme")).toBe(true);
    expect(coversTenant(scoped(), "other")).toBe(false);
    expect(coversTenant(scoped({ tenant: "*" }), "other")).toBe(true);
    expect(coversTenant(HOME, "other")).toBe(true);
  });
});
