import { describe, expect, it } from "@jest/globals";
import { assertBindPolicy } from "./bind-policy.ts";

describe("assertBindPolicy", () => {
  it.each(["127.0.0.1", "127.8.8.8", "::1", "localhost"])("lets %s listen without TLS and keys", (host) => {
    assertBindPolicy({ host, tls: "off", keys: "absent" });
  });

  it.each([
    "0.0.0.0",
    "::",
    "10.0.0.1",
    "192.168.1.1",
    "example.org",
    "127.0.0.1.example.org",
    "127.1",
    "",
    "::ffff:127.0.0.1",
  ])("refuses %j without TLS and keys (attack 63)", (host) => {
    const refused = expect.objectContaining({ reason: "CONFIG_INVALID" });
    expect(() => assertBindPolicy({ host, tls: "off", keys: "absent" })).toThrow(refused);
    expect(() => assertBindPolicy({ host, tls: "on", keys: "absent" })).toThrow("public keys");
    expect(() => assertBindPolicy({ host, tls: "off", keys: "present" })).toThrow("TLS");
    assertBindPolicy({ host, tls: "on", keys: "present" });
  });
});
