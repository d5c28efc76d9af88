import type { Secret } from "@turnbox/client";
import type { DaytonaConfig, NetworkPolicy } from "./resolved.ts";

/** A profile as it was written. What is left out has a default; what is there is checked, whatever its type says. */
export interface RawProfile {
  readonly profile?: string;
  readonly backend?: string;
  readonly syncMode?: string;
  readonly persistence?: string;
  readonly runtimeRootDir?: string;
  readonly destroyOnStop?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** With the values that a vault gave; a reference that was not resolved is not looked up here. */
  readonly secretEnv?: Readonly<Record<string, string | Secret>>;
  readonly network?: Partial<NetworkPolicy>;
  readonly daytona?: Partial<DaytonaConfig>;
}
