import type { RequestError } from "@agentclientprotocol/sdk";
import { type Reason, SandboxError } from "@turnbox/client";
import type { Acp } from "./acp.ts";

const PARSE_ERROR = -32700;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const REQUEST_CANCELLED = -32800;
const AUTH_REQUIRED = -32000;
const RESOURCE_NOT_FOUND = -32002;
const FORBIDDEN = -32003;

const CODE_OF_REASON: Partial<Record<Reason, number>> = {
  INVALID_ARGUMENT: INVALID_PARAMS,
  PATH_REFUSED: INVALID_PARAMS,
  COMMAND_MISSING: INVALID_PARAMS,
  FILE_NOT_FOUND: RESOURCE_NOT_FOUND,
  PROCESS_NOT_FOUND: RESOURCE_NOT_FOUND,
  PERMISSION_DENIED: FORBIDDEN,
  CANCELLED: REQUEST_CANCELLED,
};
const INTERNAL_ERROR = -32603;

const REASON_OF_CODE: ReadonlyMap<number, Reason> = new Map([
  [PARSE_ERROR, "INVALID_ARGUMENT"],
  [METHOD_NOT_FOUND, "CAPABILITY_NOT_SUPPORTED"],
  [INVALID_PARAMS, "INVALID_ARGUMENT"],
  [REQUEST_CANCELLED, "CANCELLED"],
  [AUTH_REQUIRED, "UNAUTHENTICATED"],
]);

/** A failure of ours, as the agent gets it. */
export function toRequestError(acp: Acp, thrown: unknown): RequestError {
  const error = SandboxError.from(thrown);
  const data = { reason: error.reason, remedy: error.remedy, ...error.metadata };
  return new acp.RequestError(CODE_OF_REASON[error.reason] ?? INTERNAL_ERROR, error.message, data);
}

/** An agent's refusal, as the caller gets it; undefined if it is none. */
export function fromRequestError(acp: Acp, thrown: unknown): SandboxError | undefined {
  if (!(thrown instanceof acp.RequestError)) return undefined;
  const reason = REASON_OF_CODE.get(thrown.code) ?? "INTERNAL";
  return new SandboxError(reason, `the agent answered: ${thrown.message}`, {
    cause: thrown,
    metadata: { code: String(thrown.code) },
  });
}
