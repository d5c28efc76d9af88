/** A property's value and its source: `local`, `default`, `inherited from <dataset>`, `-`. */
export interface Property {
  readonly source: string;
  readonly value: string;
}

/** Properties by dataset, from `zfs get -H -o name,property,source,value`. Order is that of the listing. */
export function parseProperties(stdout: string): ReadonlyMap<string, ReadonlyMap<string, Property>> {
  const datasets = new Map<string, Map<string, Property>>();
  for (const line of lines(stdout)) {
    const [name, property, source, ...rest] = line.split("\t");
    if (name === undefined || property === undefined || source === undefined || name.includes("#")) continue;
    const properties = datasets.get(name) ?? new Map<string, Property>();
    properties.set(property, { source, value: rest.join("\t") });
    datasets.set(name, properties);
  }
  return datasets;
}

/** The columns of `zfs list -H` and `zpool list -H`, bookmarks left out. */
export function parseColumns(stdout: string): readonly (readonly string[])[] {
  return lines(stdout)
    .map((line) => line.split("\t"))
    .filter(([name]) => name !== undefined && !name.includes("#"));
}

/** A number of `zfs get -p`. What does not apply is `-` or left out; `none` is no bound. */
export function parseBytes(value: string | undefined): number {
  if (value === undefined) return 0;
  const digits = /^(\d+)B?$/.exec(value)?.[1];
  return digits === undefined ? 0 : Number(digits);
}

/** The state of a pool in its own word, and its fragmentation if the second column has one: `12%`, or `12`, or `-`. */
export function parseHealth(stdout: string): { readonly word: string; readonly fragmentationPercent?: number } {
  const [word = "", fragmentation = ""] = stdout.trim().split("\t");
  const percent = /^(\d+)%?$/.exec(fragmentation)?.[1];
  return { word, ...(percent === undefined ? {} : { fragmentationPercent: Number(percent) }) };
}

/** What the pool is made of: the leaves below the pool in the `config:` part of `zpool status`. */
export function parseVdevs(stdout: string, pool: string): readonly string[] {
  const config = lines(stdout).filter((line) => /^\s/.test(line));
  const start = config.findIndex((line) => line.trim().split(/\s+/)[0] === pool && line.startsWith("\t"));
  if (start === -1) return [];
  const vdevs: string[] = [];
  for (const line of config.slice(start + 1)) {
    const path = /^\t\s+(\S.*?)\s+[A-Z]+(\s+[\d.]+[KMGTP]?){3}/.exec(line)?.[1];
    if (path !== undefined) vdevs.push(path);
  }
  return vdevs;
}

/** One mounted filesystem, from the kernel's table. */
export interface Mount {
  readonly path: string;
  /** What is mounted; for zfs the dataset. */
  readonly source: string;
  readonly filesystem: string;
  readonly options: ReadonlySet<string>;
}

/** The table of `/proc/<pid>/mountinfo`. A path mounted over is listed once per mount, the visible one last. */
export function parseMountTable(text: string): readonly Mount[] {
  return lines(text).flatMap((line) => {
    const [left, right] = line.split(" - ");
    const path = left?.split(" ")[4];
    const options = left?.split(" ")[5];
    const [filesystem, source] = right?.split(" ") ?? [];
    if (path === undefined || options === undefined || filesystem === undefined || source === undefined) return [];
    return [{ path: unescape(path), source: unescape(source), filesystem, options: new Set(options.split(",")) }];
  });
}

/** The kernel writes space, tab, newline and backslash as three octal digits. */
function unescape(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}

function lines(text: string): readonly string[] {
  return text.split("\n").filter((line) => line !== "");
}
