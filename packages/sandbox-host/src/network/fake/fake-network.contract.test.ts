import { networkSuite } from "../network.suite.ts";
import { FakeNetwork } from "./fake-network.ts";

networkSuite("fake", async () => {
  let current = new FakeNetwork();
  return {
    network: current,
    restart: async () => {
      await current[Symbol.asyncDispose]();
      current = current.restarted();
      return current;
    },
    addresses: ["192.31.196.50", "192.31.196.60"],
    connect: async (container, address) => current.connect(container, address),
    leftovers: async (containers) => containers.filter((container) => current.policies.has(container)),
    [Symbol.asyncDispose]: async () => {
      await current[Symbol.asyncDispose]();
    },
  };
});
