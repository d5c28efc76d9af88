/** A measure by package and one of the whole repository as pairs of a name and a number. */
const flatten = (counts) =>
  Object.entries(counts).flatMap(([name, count]) =>
    typeof count === "number"
      ? [[name, count]]
      : Object.entries(count).map(([group, part]) => [`${name} (${group})`, part]),
  );

/**
 * What is wrong between what was counted and the limits: a measure above its limit, or a limit that can be lowered, so that the file of
 * limits always states the truth. What has no limit has the limit 0.
 */
export function judge(counts, limits) {
  const [counted, limited] = [new Map(flatten(counts)), new Map(flatten(limits))];
  const names = [...new Set([...counted.keys(), ...limited.keys()])];
  return names.flatMap((name) => {
    const [count, limit] = [counted.get(name) ?? 0, limited.get(name) ?? 0];
    if (count > limit) return [`${name}: ${count}, and the limit is ${limit}; npm run house -- --list shows them`];
    return count < limit ? [`${name}: ${count}; lower the limit of ${limit} to ${count}`] : [];
  });
}

/** The limits after they were lowered to what was counted. None is ever raised: a measure above its limit keeps that limit. */
export function lower(counts, limits) {
  const least = (count, limit) => {
    if (typeof count === "number" && typeof limit === "number") return Math.min(count, limit);
    const parts = typeof count === "number" ? {} : count;
    const former = typeof limit === "number" ? {} : (limit ?? {});
    const kept = Object.keys(former).filter((group) => (parts[group] ?? 0) > 0);
    return kept.length === 0
      ? 0
      : Object.fromEntries(kept.map((group) => [group, Math.min(parts[group], former[group])]));
  };
  return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, least(count, limits[name] ?? 0)]));
}
