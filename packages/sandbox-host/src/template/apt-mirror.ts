import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@turnbox/core";

/** A release of Debian and the mirror of its packages. */
export interface AptMirror {
  readonly codename: string;
  readonly url: string;
}

/** One `deb` entry of apt's sources. */
interface Entry {
  readonly urls: readonly string[];
  readonly suites: readonly string[];
  readonly components: readonly string[];
}

/** The release of this machine and its mirror, which is known to be reachable. */
export async function readAptMirror(): Promise<AptMirror> {
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  const codename = /^VERSION_CODENAME=(.+)$/m.exec(release)?.[1]?.replaceAll('"', "");
  const url = codename === undefined ? null : findMirror(await readSources("/etc/apt"), codename);
  if (codename === undefined || url === null) {
    throw new SandboxError(
      "COMMAND_MISSING",
      "template debian can be built on Debian only: no release or mirror was found in the apt sources",
    );
  }
  return { codename, url };
}

/** The text of all source files, with an empty line after each, which ends an entry. */
async function readSources(directory: string): Promise<string> {
  const more = join(directory, "sources.list.d");
  const names = (await readdir(more).catch(() => [])).filter((name) => /\.(list|sources)$/.test(name)).toSorted();
  const paths = [join(directory, "sources.list"), ...names.map((name) => join(more, name))];
  const texts = await Promise.all(paths.map((path) => readFile(path, "utf8").catch(() => "")));
  return texts.join("\n\n");
}

/** The mirror of the release itself in apt sources of either format. Pure. */
export function findMirror(sources: string, codename: string): string | null {
  const entries = [...oneLineEntries(sources), ...stanzaEntries(sources)];
  const [best] = entries
    .filter(({ suites, components }) => suites.includes(codename) && components.includes("main"))
    .flatMap(({ urls }) => urls.filter((url) => /^(https?|file):/.test(url)))
    .toSorted((a, b) => rank(b, entries, codename) - rank(a, entries, codename));
  return best ?? null;
}

/** Other repositories may use the release's name too; the release's own has its updates as well. */
function rank(url: string, entries: readonly Entry[], codename: string): number {
  const hasUpdates = entries.some(({ urls, suites }) => urls.includes(url) && suites.includes(`${codename}-updates`));
  return (hasUpdates ? 2 : 0) + (/\/debian\/?$/.test(url) ? 1 : 0);
}

function oneLineEntries(sources: string): readonly Entry[] {
  return [...sources.matchAll(/^deb\s+(?:\[[^\]]*\]\s+)?(\S+)[ \t]+(\S+)([^\n#]*)/gm)].map(
    ([, url = "", suite = "", components = ""]) => ({ urls: [url], suites: [suite], components: words(components) }),
  );
}

function stanzaEntries(sources: string): readonly Entry[] {
  return sources.split(/\n\s*\n/).flatMap((stanza) => {
    const field = (name: string): readonly string[] =>
      words(new RegExp(`^${name}:[ \\t]*(.*)$`, "mi").exec(stanza)?.[1] ?? "");
    const isUsed = field("Types").includes("deb") && !/^(no|false|0|off)$/i.test(field("Enabled")[0] ?? "yes");
    return isUsed ? [{ urls: field("URIs"), suites: field("Suites"), components: field("Components") }] : [];
  });
}

const words = (text: string): readonly string[] => text.split(/\s+/).filter((word) => word !== "");
