import { compareVersions } from "./version.mjs";

/** From this version on a release may not break the protocol. */
export const STRICT_FROM = "0.2.0";

export const tagOf = (version) => `v${version}`;

/**
 * What the comparison of the protocol with the last release means: `findings` is what `buf breaking` printed, empty if it
 * objects to nothing. Without a release there is nothing to compare with.
 *
 * @param {{ version: string, last?: string | undefined, findings?: string }} comparison
 */
export function judgeBreaking({ version, last, findings = "" }) {
  if (last === undefined) return { fails: false, text: "protocol: no tag of an earlier release to compare with" };
  if (findings === "") return { fails: false, text: `protocol: nothing is broken since ${tagOf(last)}` };
  const fails = compareVersions(version, STRICT_FROM) >= 0;
  const verdict = fails
    ? `FAILED: ${version} breaks the protocol of ${tagOf(last)}`
    : `WARNING: ${version} breaks the protocol of ${tagOf(last)}; from ${STRICT_FROM} on this fails`;
  return { fails, text: `protocol: ${verdict}\n${findings}` };
}
