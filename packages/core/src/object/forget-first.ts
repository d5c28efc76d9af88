/** Takes the oldest entry out of a map that is kept small. */
export function forgetFirst<Key>(map: Map<Key, unknown>): void {
  for (const key of map.keys()) {
    map.delete(key);
    return;
  }
}
