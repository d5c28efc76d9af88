import { describe, expect, it } from "@jest/globals";
import { checkNetwork } from "./network-check.ts";

const OPEN = { allowPublicIngress: true, allowOutbound: true, allowList: [], denyList: [], required: false };
const CANNOT = { ingress: "open", outbound: "open", lists: "ignored" } as const;
const CAN = { ingress: "enforced", outbound: "enforced", lists: "enforced" } as const;

describe("a network policy", () => {
  const strict = {
    ...OPEN,
    allowPublicIngress: false,
    allowOutbound: false,
    allowList: ["a.example"],
    denyList: ["b.example"],
  };

  it("that cannot be enforced is warned of, part by part", () => {
    expect(checkNetwork(strict, CANNOT, "local")).toEqual([
      "local does not enforce network.allowPublicIngress: false",
      "local does not enforce network.allowOutbound: false",
      "local does not enforce network.allowList",
      "local does not enforce network.denyList",
    ]);
    expect(checkNetwork({ ...OPEN, denyList: ["b.example"] }, { ...CAN, lists: "ignored" }, "x")).toHaveLength(1);
  });

  it("that is required is refused instead", () => {
    expect(() => checkNetwork({ ...strict, required: true }, CANNOT, "local")).toThrow(
      expect.objectContaining({ reason: "CAPABILITY_NOT_SUPPORTED" }),
    );
  });

  it("that is kept, or restricts nothing, is no matter", () => {
    expect(checkNetwork({ ...strict, required: true }, CAN, "x")).toEqual([]);
    expect(checkNetwork({ ...OPEN, required: true }, CANNOT, "local")).toEqual([]);
  });
});
