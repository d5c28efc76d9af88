/** One-line options and the deb822 fields that mean the same. */
const OPTION_FIELDS = {
  arch: "Architectures",
  lang: "Languages",
  target: "Targets",
  pdiffs: "PDiffs",
  "by-hash": "By-Hash",
  "allow-insecure": "Allow-Insecure",
  "allow-weak": "Allow-Weak",
  "allow-downgrade-to-insecure": "Allow-Downgrade-To-Insecure",
  trusted: "Trusted",
  "signed-by": "Signed-By",
  "check-valid-until": "Check-Valid-Until",
  "valid-until-min": "Valid-Until-Min",
  "valid-until-max": "Valid-Until-Max",
  "check-date": "Check-Date",
  "date-max-future": "Date-Max-Future",
  "inrelease-path": "InRelease-Path",
};

/** Fields of an entry that do not carry over to an entry for another suite. */
const OWN_FIELDS = new Set(["types", "uris", "suites", "components", "enabled", "inrelease-path", "snapshot"]);

const words = (text) => (text ?? "").split(/\s+/).filter((word) => word !== "");

/** Text of a `.sources` file to entries. A value that continues on further lines (a key block) is kept as written. */
export function parseDeb822Sources(text) {
  const stanzas = text
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .join("\n")
    .split(/\n[ \t]*(?:\n|$)/);
  return stanzas.flatMap((stanza) => {
    const fields = [];
    for (const line of stanza.split("\n")) {
      const field = /^([A-Za-z][A-Za-z0-9-]*):[ \t]*(.*)$/.exec(line);
      if (field !== null) fields.push({ name: field[1], value: field[2].trimEnd() });
      else if (/^[ \t]/.test(line) && fields.length > 0) fields[fields.length - 1].value += `\n${line.trimEnd()}`;
    }
    const value = (name) => fields.find((field) => field.name.toLowerCase() === name)?.value;
    if (fields.length === 0 || /^(no|false|0|off)$/i.test(value("enabled") ?? "yes")) return [];
    return [
      {
        types: words(value("types")),
        uris: words(value("uris")),
        suites: words(value("suites")),
        components: words(value("components")),
        options: fields.filter((field) => !OWN_FIELDS.has(field.name.toLowerCase())),
      },
    ];
  });
}

function parseOption(text) {
  const option = /^([a-z-]*[a-z])([+-]?)=(.*)$/i.exec(text);
  const name = option === null ? undefined : OPTION_FIELDS[option[1].toLowerCase()];
  if (name === undefined || OWN_FIELDS.has(name.toLowerCase())) return [];
  const change = { "": "", "+": "-Add", "-": "-Remove" }[option[2]];
  return [{ name: `${name}${change}`, value: option[3].split(",").join(" ") }];
}

/** Text of a `.list` file to entries. */
export function parseOneLineSources(text) {
  return text.split("\n").flatMap((line) => {
    const entry = /^\s*(deb|deb-src)\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)((?:\s+[^\s#]+)*)\s*(?:#.*)?$/.exec(line);
    if (entry === null) return [];
    const [, type, options, uri, suite, components] = entry;
    return [
      {
        types: [type],
        uris: [uri],
        suites: [suite],
        components: words(components),
        options: words(options).flatMap(parseOption),
      },
    ];
  });
}

/** Entries of all files, by the name of each (`.sources`, or `.list` and `sources.list`). */
export function parseSources(files) {
  return files.flatMap(({ name, text }) => {
    if (name.endsWith(".sources")) return parseDeb822Sources(text);
    return name.endsWith(".list") ? parseOneLineSources(text) : [];
  });
}

/** A foreign repository may use the release's name as its suite too; the release itself also has an `-updates` suite. */
function rank(entry, { entries, codename }) {
  const sharesUri = (other) => other.uris.some((uri) => entry.uris.includes(uri));
  const hasUpdates = entries.some((other) => sharesUri(other) && other.suites.includes(`${codename}-updates`));
  const namedAfterSystem = entry.uris.some((uri) => /\/debian\/?$/.test(uri));
  return (hasUpdates ? 2 : 0) + (namedAfterSystem ? 1 : 0);
}

/** The entry that the machine's own release comes from. Undefined when there is none. */
export function findRelease(entries, codename) {
  const [entry] = entries
    .filter(({ types, suites, components }) => {
      return types.includes("deb") && suites.includes(codename) && components.includes("main");
    })
    .map((candidate) => ({ ...candidate, uris: candidate.uris.filter((uri) => !uri.startsWith("cdrom:")) }))
    .filter(({ uris }) => uris.length > 0)
    .sort((a, b) => rank(b, { entries, codename }) - rank(a, { entries, codename }));
  return entry;
}

/** One entry as the text of a `.sources` file. */
export function formatSource({ uris, suites, components, options }) {
  return [
    "Types: deb",
    `URIs: ${uris.join(" ")}`,
    `Suites: ${suites.join(" ")}`,
    `Components: ${components.join(" ")}`,
    ...options.map(({ name, value }) => (value.startsWith("\n") ? `${name}:${value}` : `${name}: ${value}`)),
    "",
  ].join("\n");
}

/**
 * The `.sources` text for the backports of the machine's own release, made from the entry that the release itself comes
 * from, with its addresses, keys and options. Undefined when there is no such entry.
 */
export function deriveBackports(entries, codename) {
  const entry = findRelease(entries, codename);
  return entry === undefined ? undefined : formatSource({ ...entry, suites: [`${codename}-backports`] });
}

/** Versions that the configured sources offer, from `apt-cache policy <package>`; installed-only ones are left out. */
export function parsePolicy(text) {
  const candidate = /^ {2}Candidate: (.+)$/m.exec(text)?.[1];
  const offered = [];
  let version;
  for (const line of text.split("\n")) {
    version = /^ (?:\*\*\*| {3}) (\S+) -?\d+$/.exec(line)?.[1] ?? version;
    const suite = /^ {8,}-?\d+ \S+ (\S+?)\/\S+ \S+ Packages$/.exec(line)?.[1];
    if (suite !== undefined && version !== undefined) offered.push({ version, suite });
  }
  return { candidate: candidate === "(none)" ? undefined : candidate, offered };
}

/**
 * How to get a package of at least `minimumVersion`: the candidate, an offer of another configured suite (`-t`), or
 * `undefined` when no configured source has it. `pattern` takes the comparable number out of a version.
 */
export function chooseOffer({ policy, pattern, minimumVersion }) {
  const isEnough = (version) => Number(new RegExp(pattern).exec(version)?.[1] ?? Number.NaN) >= Number(minimumVersion);
  if (policy.candidate !== undefined && isEnough(policy.candidate)) {
    if (policy.offered.some(({ version }) => version === policy.candidate)) return { targetSuite: undefined };
  }
  const offer = policy.offered.find(({ version }) => isEnough(version));
  return offer === undefined ? undefined : { targetSuite: offer.suite };
}
