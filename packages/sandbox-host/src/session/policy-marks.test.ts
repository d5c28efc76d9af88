import { createHash } from "node:crypto";
import { describe, expect, it } from "@jest/globals";
import { randomToken } from "@turnbox/core";
import { DENY_ALL, type NetworkPolicy } from "../network-policy/policy.ts";
import { checkMarks } from "../storage/names.ts";
import { policyMarks, readPolicyMarks } from "./policy-marks.ts";

const policyOf = (count: number, nameOf = (index: number) => `host-${index}.example.org`): NetworkPolicy => ({
  allowPublicIngress: true,
  allowOutbound: true,
  allowList: Array.from({ length: count }, (_, index) => nameOf(index)),
  denyList: ["10.0.0.0/8"],
  required: true,
});

const hash = (tag: string, index: number): string =>
  createHash("sha256").update(`${tag}${index}`).digest("hex").slice(0, 20);

describe("policyMarks", () => {
  it.each([0, 3, 30, 256])("keeps a policy with %i names, in marks that every storage takes", (count) => {
    const marks = policyMarks(policyOf(count));
    checkMarks(marks);
    expect(readPolicyMarks(marks)).toEqual(policyOf(count));
    expect(readPolicyMarks(policyMarks(DENY_ALL))).toEqual(DENY_ALL);
  });

  it("keeps no policy that is too long, and then denies everything", () => {
    const marks = policyMarks(policyOf(256, () => `${randomToken(63)}.${randomToken(63)}.${randomToken(63)}.org`));
    expect(Object.keys(marks)).toEqual(["network_policy"]);
    expect(readPolicyMarks(marks)).toBeNull();
  });

  it("denies everything if there is no policy, as in a home of an earlier version", () => {
    expect(policyMarks(null)).toEqual({});
    expect(readPolicyMarks({ limits: "{}" })).toBeNull();
  });

  it("denies everything if parts are missing or of another policy, or the text is no policy", () => {
    const [one, other] = ["one", "other"].map((tag) =>
      policyMarks(policyOf(100, (index) => `${hash(tag, index)}.org`)),
    );
    if (one === undefined || other === undefined) throw new Error("there are two");
    expect(Object.keys(one).length).toBeGreaterThan(2);
    expect(readPolicyMarks({ ...one, network_policy_ab: other["network_policy_ab"] ?? "" })).toBeNull();
    expect(readPolicyMarks({ network_policy: one["network_policy"] ?? "" })).toBeNull();
    // Parts of an earlier, longer policy stay and are not read.
    expect(readPolicyMarks({ ...one, ...policyMarks(policyOf(1)) })).toEqual(policyOf(1));
    for (const text of ["", "null", "{}", '{"allowOutbound":true}', "parts:1:0123456789abcdef"])
      expect(readPolicyMarks({ network_policy: text })).toBeNull();
    expect(readPolicyMarks({ network_policy: JSON.stringify({ ...DENY_ALL, allowList: [1] }) })).toBeNull();
  });
});
