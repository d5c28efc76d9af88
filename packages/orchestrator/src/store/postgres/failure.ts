import { errnoOf, SandboxError } from "@turnbox/core";

/**
 * - `conflict`: the server undid the transaction for the sake of another one.
 * - `lost`: the server did not answer, or only that it cannot now; whether a commit took place is not known.
 * - `settings`: the server does not let this user in, or does not have the database.
 * - `refused`: the statement itself is wrong.
 */
export type FailureKind = "conflict" | "lost" | "settings" | "refused";

/** SQLSTATEs by what they mean here: whole ones, or the two letters of a class. */
const KINDS: readonly (readonly [FailureKind, readonly string[]])[] = [
  ["conflict", ["40001", "40P01"]],
  ["settings", ["28", "3D"]],
  // Connection trouble, no resources, a server that stops, starts, or has become a standby, and its timeouts.
  ["lost", ["08", "53", "57", "58", "55P03", "25006", "25P03", "25P04"]],
];

const SQLSTATE = /^[0-9A-Z]{5}$/;

/** Errors of JavaScript itself: the fault is ours, not the connection's. */
const OWN_FAULTS = ["TypeError", "RangeError", "ReferenceError", "SyntaxError"];

/** Thrown by work that met another transaction half-way and wants to look again. */
export class MetAnother extends Error {
  override readonly name = "MetAnother";
}

/** Errors of the driver, of the socket and of TLS have no SQLSTATE: then nothing was heard of the server. */
export function failureKind(thrown: unknown): FailureKind {
  if (thrown instanceof MetAnother) return "conflict";
  if (thrown instanceof SandboxError || (thrown instanceof Error && OWN_FAULTS.includes(thrown.name))) return "refused";
  const state = errnoOf(thrown);
  if (state === undefined || !SQLSTATE.test(state) || isErrno(state)) return "lost";
  const found = KINDS.find(([, states]) => states.some((one) => state === one || state.startsWith(one)));
  return found?.[0] ?? "refused";
}

/** `EPIPE` and `EPERM` look like SQLSTATEs; those begin with a digit, but for classes that begin with F, H, P and X. */
const isErrno = (code: string): boolean => code.startsWith("E");

/** The error for the caller; one that is ours already stays as it is. It names the server, never what the url holds besides. */
export function storeFailure(
  server: string,
  thrown: unknown,
  options: { readonly admitted: "no" | "unknown" },
): SandboxError {
  if (thrown instanceof SandboxError) return thrown;
  const kind = failureKind(thrown);
  const said = thrown instanceof Error && thrown.message !== "" ? thrown.message : (errnoOf(thrown) ?? "no answer");
  if (kind === "settings") return new SandboxError("CONFIG_INVALID", `storeUrl: the store at ${server} said: ${said}`);
  if (kind === "refused") return new SandboxError("INTERNAL", `the store failed: ${said}`, { cause: thrown });
  return new SandboxError("STORE_UNAVAILABLE", `the store at ${server} cannot be used: ${said}`, {
    cause: thrown,
    admitted: options.admitted,
  });
}
