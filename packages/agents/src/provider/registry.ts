import { SandboxError } from "@turnbox/client";
import { type Backend, DEFAULT_BACKEND, isBackend } from "./profile/resolved.ts";
import type { Provider } from "./provider.ts";

/** The providers of a program, one for each backend. */
export interface Registry {
  /** A provider of the same backend is replaced. PROVIDER_NIL or PROVIDER_BACKEND_INVALID where it cannot be one. */
  register(provider: Provider): void;
  /** PROVIDER_NOT_REGISTERED where there is none, PROVIDER_BACKEND_INVALID where the backend is not known. */
  provider(backend: Backend): Provider;
  /** The provider of `DEFAULT_BACKEND`. */
  defaultProvider(): Provider;
  backends(): readonly Backend[];
}

/** A registry with these providers. */
export function createRegistry(...providers: readonly Provider[]): Registry {
  const registered = new Map<Backend, Provider>();
  const provider = (backend: Backend): Provider => {
    const found = registered.get(parseBackend(backend));
    if (found !== undefined) return found;
    throw new SandboxError("PROVIDER_NOT_REGISTERED", `no provider is registered for ${backend}`, {
      metadata: { backend },
    });
  };
  const registry: Registry = {
    // Callers of plain JavaScript give what the types forbid.
    register: (candidate: Provider | null | undefined) => {
      if (typeof candidate?.backend !== "function") {
        throw new SandboxError("PROVIDER_NIL", "what is to be registered is no provider");
      }
      registered.set(parseBackend(candidate.backend()), candidate);
    },
    provider,
    defaultProvider: () => provider(DEFAULT_BACKEND),
    backends: () => [...registered.keys()],
  };
  for (const one of providers) registry.register(one);
  return registry;
}

function parseBackend(backend: unknown): Backend {
  if (isBackend(backend)) return backend;
  const shown = JSON.stringify(backend) as string | undefined;
  throw new SandboxError("PROVIDER_BACKEND_INVALID", `${shown ?? "undefined"} is no known backend`);
}
