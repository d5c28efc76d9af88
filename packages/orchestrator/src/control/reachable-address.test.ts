import { describe, expect, it } from "@jest/globals";
import { reachableAddress } from "./reachable-address.ts";

describe("reachableAddress", () => {
  it.each([
    ["127.0.0.1:3000", "https://10.1.2.3:9100", "10.1.2.3:3000"],
    ["127.8.0.1:3000", "https://host-7.internal:9100", "host-7.internal:3000"],
    ["localhost:3000", "https://10.1.2.3:9100", "10.1.2.3:3000"],
    ["[::1]:3000", "https://[fd00::7]:9100", "[fd00::7]:3000"],
    ["0.0.0.0:3000", "https://10.1.2.3:9100", "10.1.2.3:3000"],
    ["[::]:3000", "https://10.1.2.3:9100", "10.1.2.3:3000"],
    ["127.0.0.1:3000", "http://127.0.0.1:9100", "127.0.0.1:3000"],
    ["203.0.113.9:3000", "https://10.1.2.3:9100", "203.0.113.9:3000"],
    ["p3000.sandbox.example:443", "https://10.1.2.3:9100", "p3000.sandbox.example:443"],
    ["", "https://10.1.2.3:9100", ""],
  ])("D26: makes %s of a host at %s into %s", (address, hostUrl, reachable) => {
    expect(reachableAddress(address, hostUrl)).toBe(reachable);
  });
});
