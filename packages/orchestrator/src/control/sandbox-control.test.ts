import { describe, expect, it } from "@jest/globals";
import { addressToUrl, urlToAddress } from "./sandbox-control.ts";

describe("addressToUrl", () => {
  it("adds the scheme where there is none", () => {
    expect(addressToUrl("10.0.0.1:9100")).toBe("http://10.0.0.1:9100");
    expect(addressToUrl("https://host.test:9100")).toBe("https://host.test:9100");
  });
});

describe("urlToAddress", () => {
  it("always has a port", () => {
    expect(urlToAddress("http://127.0.0.1:9100")).toBe("127.0.0.1:9100");
    expect(urlToAddress("http://host.test")).toBe("host.test:80");
    expect(urlToAddress("https://host.test/")).toBe("host.test:443");
    expect(urlToAddress("http://[::1]:9100")).toBe("[::1]:9100");
  });
});
