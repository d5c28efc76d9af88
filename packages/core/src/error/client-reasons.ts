import { Code } from "@connectrpc/connect";
import { row } from "./reason-row.ts";

/** Reasons of environments and providers, which only the client's side fails for. A part of the table in reason.ts. */
export const CLIENT_REASONS = {
  CAPABILITY_NOT_SUPPORTED: row(
    Code.Unimplemented,
    "never",
    "The environment does not have this capability.",
    "Ask for the capabilities first and use what is there.",
  ),
  PROVIDER_UNAVAILABLE: row(
    Code.Unavailable,
    "after_delay",
    "The provider cannot be reached.",
    "Check the provider's address and credentials, then try again.",
    "unknown",
  ),
  PROVIDER_NIL: row(
    Code.InvalidArgument,
    "never",
    "There was an attempt to register no provider.",
    "Register an object that implements Provider.",
  ),
  PROVIDER_BACKEND_INVALID: row(
    Code.InvalidArgument,
    "never",
    "A provider names a backend that is not known.",
    "Use one of the known backends.",
  ),
  PROVIDER_NOT_REGISTERED: row(
    Code.NotFound,
    "never",
    "No provider is registered for the backend.",
    "Register one, or select another backend.",
  ),
  REMOTE_SANDBOX_NOT_FOUND: row(
    Code.NotFound,
    "never",
    "The provider has no sandbox that carries the identity labels.",
    "Prepare a new one.",
  ),
} as const;
