import { SandboxError } from "@turnbox/client";
import { type Finding, PROVIDER_CHECKS, type ProviderCheck } from "./finding.ts";

/** Thrown by a check that has nothing to look at in this provider. */
export class NotApplicable extends Error {
  override readonly name = "NotApplicable";
}

/** Gathers findings. */
export interface CheckRun {
  /** Runs a check; a failure is a finding, not an end. */
  run(check: ProviderCheck, work: () => Promise<void>): Promise<void>;
  /** Every check in its order, those that were not run as `not reached`. */
  findings(): readonly Finding[];
}

export function createCheckRun(): CheckRun {
  const found = new Map<ProviderCheck, Finding>();
  return {
    run: async (check, work) => {
      try {
        await work();
        found.set(check, { check, outcome: "passed", message: "" });
      } catch (thrown) {
        const outcome = thrown instanceof NotApplicable ? "not applicable" : "failed";
        found.set(check, { check, outcome, message: messageOf(thrown) });
      }
    },
    findings: () =>
      PROVIDER_CHECKS.map(
        (check) => found.get(check) ?? { check, outcome: "not reached", message: "an earlier check failed" },
      ),
  };
}

/** Fails the check that is running. */
export function expectThat(isSo: boolean, message: string): void {
  if (!isSo) throw new SandboxError("INTERNAL", message);
}

function messageOf(thrown: unknown): string {
  if (thrown instanceof SandboxError)
    return thrown.reason === "INTERNAL" ? thrown.message : `${thrown.reason}: ${thrown.message}`;
  return typeof thrown === "object" && thrown !== null && "message" in thrown ? String(thrown.message) : String(thrown);
}

/** Providers that hold something let it go. */
export async function dispose(provider: object): Promise<void> {
  if (!(Symbol.asyncDispose in provider)) return;
  await (provider as AsyncDisposable)[Symbol.asyncDispose]();
}
