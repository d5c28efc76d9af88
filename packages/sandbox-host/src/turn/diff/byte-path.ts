/**
 * A path inside a tree as the bytes that it is, one character for each byte: names need not be UTF-8, and `<` orders by
 * bytes. Absolute, with the root as the empty text.
 */
export type BytePath = string;

/** The path as people see it. */
export function showPath(path: BytePath): string {
  return path === "" ? "/" : Buffer.from(path, "latin1").toString("utf8");
}

/** The way back, from an absolute path without a slash at its end. */
export function toBytePath(path: string): BytePath {
  return path === "/" ? "" : Buffer.from(path, "utf8").toString("latin1");
}

/** The directories above a path, the root first. */
export function ancestorsOf(path: BytePath): readonly BytePath[] {
  const above: BytePath[] = [];
  for (let end = path.lastIndexOf("/"); end >= 0; end = end === 0 ? -1 : path.lastIndexOf("/", end - 1))
    above.push(path.slice(0, end));
  return above.reverse();
}
