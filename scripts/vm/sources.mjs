import { readFileSync } from "node:fs";
import { readSourceFiles } from "../bootstrap/apt.mjs";
import { findRelease, formatSource, parseSources } from "../bootstrap/apt-sources.mjs";
import { parseOsRelease } from "../bootstrap/system.mjs";

/** zfs-dkms is in contrib. */
const withContrib = (entry) => ({ ...entry, components: [...new Set([...entry.components, "contrib"])] });

/**
 * Where the packages of the virtual machine come from: release, security and backports of this machine, from its own
 * mirrors. Pure.
 */
export function deriveSources(entries, codename) {
  const release = findRelease(entries, codename);
  if (release === undefined) throw new Error(`the apt sources of this machine have no entry for ${codename}`);
  const security = entries.filter(
    ({ types, suites }) => types.includes("deb") && suites.includes(`${codename}-security`),
  );
  const wanted = [
    { ...release, suites: [codename] },
    { ...release, suites: [`${codename}-backports`] },
    ...security.map((entry) => ({ ...entry, suites: [`${codename}-security`] })),
  ];
  return { codename, mirror: release.uris[0], text: wanted.map(withContrib).map(formatSource).join("\n") };
}

/** @returns {{ codename: string, mirror: string, text: string }} */
export function readSources() {
  const { VERSION_CODENAME: codename } = parseOsRelease(readFileSync("/etc/os-release", "utf8"));
  if (codename === undefined) throw new Error("this system does not say which release of Debian it is");
  return deriveSources(parseSources(readSourceFiles()), codename);
}
