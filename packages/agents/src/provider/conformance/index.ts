/**
 * Checks for providers that other people write. It needs no test framework:
 *
 *     assertConforming(await checkProvider(() => createMyProvider(), { backend: "x-mine" }));
 */
export { checkProvider } from "./check-provider.ts";
export type { CheckOptions, MakeProvider } from "./check-context.ts";
export { assertConforming, type Finding, PROVIDER_CHECKS, type ProviderCheck } from "./finding.ts";
