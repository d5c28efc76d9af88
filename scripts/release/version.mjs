const FORM = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/;
const STEPS = ["major", "minor", "patch"];

/** The three numbers of a version; throws for anything else. */
export function parseVersion(text) {
  const parts = FORM.exec(text);
  if (parts === null) throw new Error(`${JSON.stringify(text)} is not a version like 0.1.0`);
  return parts.slice(1).map(Number);
}

/** Below 0 if the first version is the earlier one, above 0 if it is the later one. */
export function compareVersions(one, other) {
  const [left, right] = [parseVersion(one), parseVersion(other)];
  return left.map((part, index) => part - right[index]).find((difference) => difference !== 0) ?? 0;
}

function step(version, kind) {
  const at = STEPS.indexOf(kind);
  return parseVersion(version)
    .map((part, index) => (index < at ? part : index === at ? part + 1 : 0))
    .join(".");
}

/**
 * The version to release. `wanted` is one, or major, minor or patch. Without it, it is the version that the packages have if
 * no release has it yet, and the next patch otherwise. Throws if that is not later than the last release.
 */
export function versionToRelease({ current, last, wanted }) {
  const isReleased = last !== undefined && compareVersions(current, last) <= 0;
  const next = STEPS.includes(wanted)
    ? step(current, wanted)
    : (wanted ?? (isReleased ? step(last, "patch") : current));
  parseVersion(next);
  if (last !== undefined && compareVersions(next, last) <= 0)
    throw new Error(`${next} is not later than ${last}, which is released`);
  return next;
}
