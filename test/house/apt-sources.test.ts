import { describe, expect, it } from "@jest/globals";
import { chooseOffer, deriveBackports, parsePolicy, parseSources } from "../../scripts/bootstrap/apt-sources.mjs";

const derive = (name: string, text: string) => deriveBackports(parseSources([{ name, text }]), "bookworm");

describe("deriveBackports", () => {
  it("keeps the addresses and the key of the deb822 entry of the release", () => {
    const text = [
      "Types: deb deb-src",
      "# http://snapshot.example.org/archive",
      "URIs: http://mirror.example.org/debian",
      "Suites: bookworm bookworm-updates",
      "Components: main contrib",
      "Signed-By: /usr/share/keyrings/archive.gpg",
      "",
      "Types: deb",
      "URIs: http://mirror.example.org/debian-security",
      "Suites: bookworm-security",
      "Components: main",
    ].join("\n");
    expect(derive("debian.sources", text)).toBe(
      "Types: deb\nURIs: http://mirror.example.org/debian\nSuites: bookworm-backports\nComponents: main contrib\n" +
        "Signed-By: /usr/share/keyrings/archive.gpg\n",
    );
  });

  it("keeps a key that is written into the entry", () => {
    const text = [
      "Types: deb",
      "URIs: https://mirror.example.org/debian",
      "Suites: bookworm",
      "Components: main",
      "Signed-By:",
      " -----BEGIN PGP PUBLIC KEY BLOCK-----",
      " .",
      " abc",
      " -----END PGP PUBLIC KEY BLOCK-----",
      "",
    ].join("\n");
    expect(derive("debian.sources", text)).toContain(
      "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n abc\n -----END PGP PUBLIC KEY BLOCK-----\n",
    );
  });

  it("turns the options of a one-line entry into fields", () => {
    const text = [
      "# deb http://commented.example.org/debian bookworm main",
      "deb cdrom:[Debian 12]/ bookworm main",
      "deb [arch=amd64,arm64 signed-by=/k.gpg trusted=yes lang-=de] http://mirror.example.org/debian/ bookworm main non-free # own",
      "deb http://mirror.example.org/debian-security bookworm-security main",
    ].join("\n");
    expect(derive("/etc/apt/sources.list", text)).toBe(
      "Types: deb\nURIs: http://mirror.example.org/debian/\nSuites: bookworm-backports\nComponents: main non-free\n" +
        "Architectures: amd64 arm64\nSigned-By: /k.gpg\nTrusted: yes\nLanguages-Remove: de\n",
    );
  });

  it("prefers the release over a foreign repository that uses its name", () => {
    const text = [
      "deb https://tools.example.org bookworm main",
      "deb http://mirror.example.org/os bookworm main",
      "deb http://mirror.example.org/os bookworm-updates main",
    ].join("\n");
    expect(derive("a.list", text)).toContain("URIs: http://mirror.example.org/os\n");
  });

  it.each([
    [
      "an entry that is switched off",
      "a.sources",
      "Enabled: no\nTypes: deb\nURIs: http://m.example.org\nSuites: bookworm\nComponents: main\n",
    ],
    ["sources only", "a.list", "deb-src http://m.example.org bookworm main"],
    ["another release", "a.list", "deb http://m.example.org trixie main"],
    ["a repository without main", "a.list", "deb http://m.example.org bookworm stable"],
    ["a file that apt does not read", "a.list.disabled", "deb http://m.example.org bookworm main"],
  ])("finds nothing in %s", (_, name, text) => {
    expect(derive(name, text)).toBeUndefined();
  });
});

const policyText = (candidate: string, table: readonly string[]) =>
  ["runsc:", "  Installed: (none)", `  Candidate: ${candidate}`, "  Version table:", ...table, ""].join("\n");

const OLD = ["     0.0~20221219.0-2+b3 500", "        500 http://m.example.org/debian bookworm/main amd64 Packages"];
const NEW = [
  "     0.0~20240729.0-4~bpo12+2 100",
  "        100 http://m.example.org/debian bookworm-backports/main amd64 Packages",
];

describe("chooseOffer", () => {
  const choose = (text: string) =>
    chooseOffer({ policy: parsePolicy(text), pattern: "(\\d{8})", minimumVersion: "20240101" });

  it("takes the candidate of the release when it is new enough", () => {
    const table = ["     0.0~20250101.0-1 500", "        500 http://m.example.org/debian trixie/main amd64 Packages"];
    expect(choose(policyText("0.0~20250101.0-1", table))).toEqual({ targetSuite: undefined });
  });

  it("names the suite when only configured backports are new enough", () => {
    expect(choose(policyText("0.0~20221219.0-2+b3", [...NEW, ...OLD]))).toEqual({ targetSuite: "bookworm-backports" });
  });

  it("offers nothing when only an old version is configured", () => {
    expect(choose(policyText("0.0~20221219.0-2+b3", OLD))).toBeUndefined();
  });

  it("offers nothing for a version that is installed but in no source", () => {
    const local = [" *** 0.0~20240729.0-4 100", "        100 /var/lib/dpkg/status"];
    expect(choose(policyText("0.0~20240729.0-4", local))).toBeUndefined();
  });

  it("offers nothing for an unknown package", () => {
    expect(choose("")).toBeUndefined();
  });
});
