import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { NetworkBounds, PRIVATE_RANGES } from "./bounds.ts";
import { DENY_ALL, judgeAddress, judgeAnswer, judgeName, type NetworkPolicy, parsePolicy } from "./policy.ts";
import { whyWider } from "./wider.ts";

const policy = (more: Partial<NetworkPolicy> = {}): NetworkPolicy =>
  parsePolicy({ ...DENY_ALL, allowOutbound: true, ...more });

describe("a policy that is no wider than another", () => {
  it.each<[Partial<NetworkPolicy>, Partial<NetworkPolicy>]>([
    [{}, {}],
    [{ allowOutbound: false }, {}],
    [{ allowList: ["example.org", "1.1.1.1"] }, {}],
    [{ allowList: ["a.example.org"] }, { allowList: ["*.example.org"] }],
    [{ allowList: ["*.a.example.org"] }, { allowList: ["*.example.org"] }],
    [{ allowList: ["1.1.0.0/16"] }, { allowList: ["1.1.0.0/17", "1.1.128.0/17"] }],
    [{ allowList: ["10.1.0.0/16"] }, { allowList: ["10.0.0.0/8", "1.1.1.1"] }],
    [{ denyList: ["1.0.0.0/8", "*.example.org"] }, { denyList: ["1.1.1.1", "a.example.org"] }],
    [{ required: true }, {}],
  ])("is %j than %j", (one, other) => {
    expect(whyWider(policy(one), policy(other))).toBeUndefined();
  });

  it.each<[Partial<NetworkPolicy>, Partial<NetworkPolicy> | null, string]>([
    [{}, null, "allow_outbound"],
    [{}, { allowOutbound: false }, "allow_outbound"],
    [{ allowOutbound: false, allowPublicIngress: true }, {}, "allow_public_ingress"],
    [{}, { required: true }, "required"],
    [{}, { denyList: ["1.1.1.1"] }, "deny_list"],
    [{ denyList: ["a.example.org"] }, { denyList: ["*.example.org"] }, "deny_list"],
    [{}, { allowList: ["1.1.1.1"] }, "allow_list"],
    [{}, { allowList: ["0.0.0.0/0"] }, "allow_list"],
    [{ allowList: ["1.1.1.0/24"] }, { allowList: ["1.1.1.1"] }, "allow_list"],
    [{ allowList: ["example.org"] }, { allowList: ["*.example.org"] }, "allow_list"],
    [{ allowList: ["*.example.org"] }, { allowList: ["a.example.org"] }, "allow_list"],
    [{ allowList: ["evilexample.org"] }, { allowList: ["*.example.org"] }, "allow_list"],
    [{ allowList: ["10.1.0.0/16"] }, {}, "allow_list"],
    [{ allowList: ["10.1.0.0/16"] }, { allowList: ["0.0.0.0/0"] }, "allow_list"],
    [{ allowList: ["10.1.0.0/16", "169.254.169.254"] }, { allowList: ["10.0.0.0/8"] }, "allow_list"],
  ])("%j is not, than %j: %s", (one, other, why) => {
    expect(whyWider(policy(one), other === null ? null : policy(other))).toBe(why);
  });

  it("allows no address, name or answer that the other does not, on any host", () => {
    const entry = fc.oneof(
      fc
        .tuple(fc.constantFrom("1.1.1.1", "1.1.128.0", "10.1.2.3", "10.128.0.0", "169.254.169.254"), fc.nat(32))
        .map(([base, length]) => `${base}/${String(length)}`),
      fc.constantFrom("example.org", "*.example.org", "a.example.org", "*.a.example.org", "b.net"),
    );
    const list = fc.array(entry, { maxLength: 4 });
    const some = fc.record({ allowList: list, denyList: list }).map((lists) => policy(lists));
    const address = fc.constantFrom("1.1.1.1", "1.1.200.1", "9.9.9.9", "10.1.2.3", "10.200.0.1", "169.254.169.254");
    const name = fc.constantFrom("example.org", "a.example.org", "b.a.example.org", "b.net", "c.net");
    const bounds = fc.constantFrom(
      new NetworkBounds({ privateRanges: [], allowMetadata: false }),
      new NetworkBounds({ privateRanges: PRIVATE_RANGES, allowMetadata: true }),
    );
    let narrower = 0;
    fc.assert(
      fc.property(some, some, address, name, bounds, (one, other, at, asked, within) => {
        if (whyWider(one, other) !== undefined) return;
        narrower += 1;
        const [own, limit] = [
          { ...one, bounds: within },
          { ...other, bounds: within },
        ];
        const opened = [
          [judgeAddress(own, at), judgeAddress(limit, at)],
          [judgeAnswer(own, at), judgeAnswer(limit, at)],
          [judgeName(own, asked), judgeName(limit, asked)],
        ].map(([mine, its]) => mine?.kind === "allowed" && its?.kind !== "allowed");
        expect(opened).toEqual([false, false, false]);
      }),
      { numRuns: 5000 },
    );
    expect(narrower).toBeGreaterThan(100);
  });
});
