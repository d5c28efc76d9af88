import { hasReason } from "@turnbox/client";
import { isFinder, type PrepareRequest, type Provider, type ProviderCall, type SessionState } from "../provider.ts";
import { identityLabels } from "./identity-labels.ts";

/** The runtime that carries a session's labels; undefined if there is none, or the provider has no way to look. */
export async function findRuntime(
  provider: Provider,
  request: PrepareRequest,
  options: ProviderCall,
): Promise<SessionState | undefined> {
  if (!isFinder(provider)) return undefined;
  try {
    return await provider.findSandbox({ ...request, labels: identityLabels(request) }, options);
  } catch (thrown) {
    if (hasReason(thrown, "REMOTE_SANDBOX_NOT_FOUND")) return undefined;
    throw thrown;
  }
}
