import { describe, expect, it } from "@jest/globals";
import { createLocalProvider } from "./local/local-provider.ts";
import type { Backend, Provider } from "./provider.ts";
import { createRegistry } from "./registry.ts";

const providerOf = (backend: unknown): Provider => ({ ...createLocalProvider(), backend: () => backend as Backend });
const reasonOf = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (thrown) {
    return (thrown as { readonly reason?: string }).reason;
  }
};

describe("the registry of providers", () => {
  it("has one provider for each backend, and the later one replaces the earlier", () => {
    const [first, second, own] = [providerOf("turnbox"), providerOf("turnbox"), providerOf("x-mine")];
    const registry = createRegistry(first, own);
    expect(registry.provider("turnbox")).toBe(first);
    registry.register(second);
    expect(registry.provider("turnbox")).toBe(second);
    expect(registry.provider("x-mine")).toBe(own);
    expect(registry.backends()).toEqual(["turnbox", "x-mine"]);
  });

  it("has the local provider as its default, once that is registered", () => {
    const local = createLocalProvider();
    expect(createRegistry(local).defaultProvider()).toBe(local);
    expect(reasonOf(() => createRegistry().defaultProvider())).toBe("PROVIDER_NOT_REGISTERED");
  });

  it.each([null, undefined, {}, "local"])("refuses %p as a provider", (nothing) => {
    expect(reasonOf(() => createRegistry(nothing as Provider))).toBe("PROVIDER_NIL");
  });

  it.each(["docker", "", "X-mine", "x-", undefined])(
    "refuses the unknown backend %p, of a provider and of a caller",
    (backend) => {
      expect(reasonOf(() => createRegistry(providerOf(backend)))).toBe("PROVIDER_BACKEND_INVALID");
      expect(reasonOf(() => createRegistry().provider(backend as Backend))).toBe("PROVIDER_BACKEND_INVALID");
    },
  );

  it("says that no provider is there for a known backend", () => {
    expect(reasonOf(() => createRegistry().provider("daytona"))).toBe("PROVIDER_NOT_REGISTERED");
  });
});
