import { SandboxError } from "@turnbox/client";

/** What every provider is held to, in the order in which it is tried. */
export const PROVIDER_CHECKS = [
  "says its backend",
  "prepares nothing for a caller who has gone",
  "prepares a runtime with a launcher and a tool host",
  "answers with a state that can be written down and read again",
  "brings the workspace in at the start",
  "leaves out what the excludes say",
  "launches a program that talks over its input and output",
  "keeps the keys to providers from the agent",
  "syncs at a turn's boundaries in both directions",
  "keeps a required network policy, or refuses it",
  "gives the session the same runtime when it prepares again",
  "finds a runtime after a crash by its labels",
  "brings the files out at the stop",
  "destroys the runtime",
  "destroys a second time without effect",
  "finds nothing that was destroyed",
] as const;

/** The name of a check. */
export type ProviderCheck = (typeof PROVIDER_CHECKS)[number];

/** What a check has found. */
export interface Finding {
  readonly check: ProviderCheck;
  /** `not applicable` if the provider does not have the ability; `not reached` if an earlier check failed. */
  readonly outcome: "passed" | "failed" | "not applicable" | "not reached";
  /** Why, unless it passed. */
  readonly message: string;
}

/** Throws one error that has all that failed in it. */
export function assertConforming(findings: readonly Finding[]): void {
  const failed = findings.filter(({ outcome }) => outcome === "failed");
  if (failed.length === 0) return;
  const message = failed.map(({ check, message: why }) => `${check}: ${why}`).join("\n");
  throw new SandboxError("INTERNAL", `the provider does not conform:\n${message}`);
}
