import { beforeAll, describe, expect, it } from "@jest/globals";
import {
  type CheckOptions,
  checkProvider,
  type Finding,
  type MakeProvider,
  PROVIDER_CHECKS,
} from "./conformance/index.ts";

export interface ProviderSuite extends CheckOptions {
  readonly name: string;
  readonly make: MakeProvider;
  /** Checks that this provider has nothing for. */
  readonly notApplicable?: readonly string[];
  readonly timeoutMs?: number;
}

/** What every provider does. */
export function describeProvider({
  name,
  make,
  notApplicable = [],
  timeoutMs = 20_000,
  ...options
}: ProviderSuite): void {
  describe(`the provider ${name}`, () => {
    let findings: readonly Finding[];
    beforeAll(async () => {
      findings = await checkProvider(make, options);
    }, timeoutMs);

    it.each(PROVIDER_CHECKS)("%s", (check) => {
      const outcome = notApplicable.includes(check) ? "not applicable" : "passed";
      expect(findings.find((one) => one.check === check)).toMatchObject({ check, outcome });
    });
  });
}
