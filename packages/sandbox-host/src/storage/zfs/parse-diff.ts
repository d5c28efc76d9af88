/**
 * The paths in what `zfs diff -FH` prints, absolute below the mount, sorted; null where a line cannot be understood. A line
 * is a kind of change, a type of file and a path, then a second path where it was renamed, or a change of its link count.
 */
export function parseDiff(stdout: string, mountPath: string): readonly string[] | null {
  const paths = new Set<string>();
  for (const line of stdout.split("\n").filter((text) => text !== "")) {
    const found = parseLine(line, mountPath);
    if (found === null) return null;
    for (const path of found) paths.add(path);
  }
  return [...paths].sort();
}

function parseLine(line: string, mountPath: string): readonly string[] | null {
  const [change, type, path, more, ...rest] = line.split("\t");
  if (change === undefined || !/^[-+MR]$/.test(change) || type === undefined || path === undefined) return null;
  if (rest.length > 0) return null;
  if (change !== "R") return more === undefined || /^\([-+]\d+\)$/.test(more) ? together([path], mountPath) : null;
  return more === undefined ? null : together([path, more], mountPath);
}

function together(escaped: readonly string[], mountPath: string): readonly string[] | null {
  const paths = escaped.map((path) => inside(unescape(path), mountPath));
  return paths.some((path) => path === null) ? null : paths.filter((path) => path !== null);
}

function inside(path: string, mountPath: string): string | null {
  if (path === mountPath || path === `${mountPath}/`) return "/";
  if (!path.startsWith(`${mountPath}/`)) return null;
  // Attributes are files of a hidden directory; to everybody else they are a part of their owner.
  const [owner = ""] = path.slice(mountPath.length).split("/<xattrdir>");
  return owner === "" ? "/" : owner;
}

/** Every byte but printable ASCII is `\0` and three octal digits, each byte of a character by itself. */
function unescape(text: string): string {
  const bytes = Buffer.from(text, "utf8").toString("latin1");
  const plain = bytes.replace(/\\0([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8) & 0xff),
  );
  return Buffer.from(plain, "latin1").toString("utf8");
}
