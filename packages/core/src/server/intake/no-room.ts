import { SandboxError } from "../../error/sandbox-error.ts";

const RETRY_MS = 1000;

/** The bytes of a request are not admitted at this moment. */
export const noRoom = (): SandboxError =>
  new SandboxError("OVERLOADED", "as many bytes of requests are in flight as are admitted", { retryAfterMs: RETRY_MS });
