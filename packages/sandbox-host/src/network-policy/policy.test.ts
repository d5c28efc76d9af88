import { describe, expect, it } from "@jest/globals";
import { SandboxError } from "@turnbox/core";
import { NetworkBounds } from "./bounds.ts";
import {
  assertEnforceable,
  DENY_ALL,
  judgeAddress,
  judgeAnswer,
  judgeName,
  type NetworkPolicy,
  parsePolicy,
  type PolicyInForce,
} from "./policy.ts";

const bounds = new NetworkBounds({ privateRanges: [], allowMetadata: false });
const policy = (more: Partial<NetworkPolicy> = {}, privateRanges: readonly string[] = []): PolicyInForce => ({
  ...parsePolicy({ ...DENY_ALL, allowOutbound: true, ...more }),
  bounds: new NetworkBounds({ privateRanges, allowMetadata: false }),
});
const isOpen = (verdict: { readonly kind: string }): boolean => verdict.kind === "allowed";
const reasonOf = (work: () => unknown): string => {
  try {
    work();
    return "none";
  } catch (thrown) {
    return SandboxError.from(thrown).reason;
  }
};

describe("the lists of a policy", () => {
  it("hold ranges and names in one spelling, each once", () => {
    const { allowList } = policy({ allowList: ["8.8.8.9/24", "8.8.8.0/24", "*.Example.ORG.", "9.9.9.9"] });
    expect(allowList).toEqual(["8.8.8.0/24", "*.example.org", "9.9.9.9/32"]);
  });

  it.each([
    "",
    "1.2.3",
    "1.2.3.4/33",
    "1.2.3.4/8/8",
    "01.2.3.4",
    "fd00::/8",
    "*",
    "*.",
    "a b",
    "-x.org",
    "a..b",
    "x.1",
  ])("do not hold %j", (entry) => {
    expect(reasonOf(() => policy({ allowList: [entry] }))).toBe("INVALID_ARGUMENT");
    expect(reasonOf(() => policy({ denyList: [entry] }))).toBe("INVALID_ARGUMENT");
  });

  it("have a bound", () => {
    const many = Array.from({ length: 257 }, (_, index) => `h${String(index)}.example.org`);
    expect(reasonOf(() => policy({ allowList: many }))).toBe("INVALID_ARGUMENT");
  });
});

describe("a policy", () => {
  it("allows nothing by default", () => {
    expect(isOpen(judgeAddress({ ...DENY_ALL, bounds }, "1.1.1.1"))).toBe(false);
    expect(isOpen(judgeName(DENY_ALL, "example.org"))).toBe(false);
  });

  it("opens what is public if nothing is listed", () => {
    expect(isOpen(judgeAddress(policy(), "1.1.1.1"))).toBe(true);
    for (const address of [
      "10.0.0.1",
      "172.31.255.255",
      "192.168.1.1",
      "127.0.0.1",
      "0.0.0.0",
      "100.100.100.200",
      "169.254.169.254",
      "224.0.0.1",
      "255.255.255.255",
      "198.18.0.1",
    ]) {
      expect([address, isOpen(judgeAddress(policy(), address))]).toEqual([address, false]);
    }
  });

  it("opens a closed address only if the operator does and a range of closed ones contains it; the deny list wins", () => {
    const opened = ["10.0.0.0/8"];
    expect(isOpen(judgeAddress(policy({ allowList: ["10.1.0.0/16"] }), "10.1.2.3"))).toBe(false);
    expect(isOpen(judgeAddress(policy({ allowList: ["10.1.0.0/16"] }, opened), "10.1.2.3"))).toBe(true);
    expect(isOpen(judgeAddress(policy({}, opened), "10.1.2.3"))).toBe(false);
    const both = policy({ allowList: ["10.1.0.0/16"], denyList: ["10.1.2.0/24"] }, opened);
    expect(isOpen(judgeAddress(both, "10.1.2.3"))).toBe(false);
    expect(isOpen(judgeAddress(both, "10.1.3.3"))).toBe(true);
  });

  it.each([[["0.0.0.0/0"]], [["0.0.0.0/1", "128.0.0.0/1"]], [["8.0.0.0/5"]]])(
    "takes %j for public addresses, also where the operator opens private ones",
    (allowList) => {
      const wide = policy({ allowList }, ["10.0.0.0/8"]);
      expect(isOpen(judgeAddress(wide, "10.1.2.3"))).toBe(false);
      expect(isOpen(judgeAddress(wide, "11.1.2.3"))).toBe(true);
    },
  );

  it("allows exactly the names it lists; a star covers what is below, not itself", () => {
    const listed = policy({ allowList: ["*.example.org", "one.net"], denyList: ["bad.example.org"] });
    const asked = [
      "a.example.org",
      "a.b.EXAMPLE.org.",
      "example.org",
      "bad.example.org",
      "one.net",
      "xone.net",
      "evilexample.org",
    ];
    expect(asked.filter((name) => isOpen(judgeName(listed, name)))).toEqual([
      "a.example.org",
      "a.b.EXAMPLE.org.",
      "one.net",
    ]);
  });

  it("lets an allowed name lead to any public address and to no special or denied one", () => {
    const listed = policy({ allowList: ["*.example.org"], denyList: ["5.5.5.0/24"] });
    expect(isOpen(judgeAnswer(listed, "1.1.1.1"))).toBe(true);
    expect(isOpen(judgeAnswer(listed, "10.0.0.1"))).toBe(false);
    expect(isOpen(judgeAnswer(listed, "5.5.5.5"))).toBe(false);
  });
});

describe("the bounds of a host", () => {
  const given = (allowList: readonly string[], settings = { privateRanges: ["10.1.0.0/16"], allowMetadata: false }) =>
    parsePolicy(
      { ...DENY_ALL, allowOutbound: true, allowList },
      { field: "policy", bounds: new NetworkBounds(settings) },
    );

  it("refuse an entry that lies wholly in what is shut, and name it and the setting", () => {
    expect(() => given(["1.1.1.1", "1.1.1.1", "169.254.169.254"])).toThrow(
      "policy.allow_list[2]: 169.254.169.254/32 is a metadata address, which the host's setting allowMetadata does not open",
    );
    expect(() => given(["10.2.0.0/16"])).toThrow(/^policy\.allow_list\[0\]: 10\.2\.0\.0\/16 .*privateRanges/);
    expect(() => given(["127.0.0.1"])).toThrow("no sandbox reaches");
    expect(reasonOf(() => given([" 10.2.0.1. "]))).toBe("INVALID_ARGUMENT");
  });

  it("take entries that open something: names, public and wide ranges, and ranges with an opened part", () => {
    expect(
      given(["example.org", "1.1.1.1", "0.0.0.0/0", "10.0.0.0/7", "10.0.0.0/8", "10.1.2.3"]).allowList,
    ).toHaveLength(6);
    expect(given(["169.254.169.254"], { privateRanges: [], allowMetadata: true }).allowList).toHaveLength(1);
  });

  it("let a policy deny what is shut", () => {
    const denying = { ...DENY_ALL, allowOutbound: true, denyList: ["10.0.0.0/8"] };
    expect(parsePolicy(denying, { bounds }).denyList).toEqual(["10.0.0.0/8"]);
  });
});

describe("a host that cannot enforce policies", () => {
  const absent = { kind: "absent", why: "no nft" } as const;
  const open = { kind: "open", why: "runtime none" } as const;

  it("without a network, refuses a policy that allows something, and takes one that allows nothing", () => {
    expect(
      reasonOf(() => {
        assertEnforceable(policy(), absent);
      }),
    ).toBe("CAPABILITY_NOT_SUPPORTED");
    expect(
      reasonOf(() => {
        assertEnforceable({ ...DENY_ALL, required: true }, absent);
      }),
    ).toBe("none");
  });

  it("if everything is open, refuses every policy that is required", () => {
    expect(
      reasonOf(() => {
        assertEnforceable({ ...DENY_ALL, required: true }, open);
      }),
    ).toBe("CAPABILITY_NOT_SUPPORTED");
    expect(
      reasonOf(() => {
        assertEnforceable(policy(), open);
      }),
    ).toBe("none");
  });
});
