import { describe, expect, it } from "@jest/globals";
import { findMirror } from "./apt-mirror.ts";

describe("findMirror", () => {
  it("finds the mirror of the release in deb822 sources, past comments, other suites and what is switched off", () => {
    const sources = `Types: deb
URIs: http://mirror.example.org/debian-security
Suites: bookworm-security
Components: main

Enabled: no
Types: deb
URIs: http://off.example.org/debian
Suites: bookworm bookworm-updates
Components: main

Types: deb
# http://old.example.org/debian
URIs: http://mirror.example.org/debian
Suites: bookworm bookworm-updates
Components: main
`;
    expect(findMirror(sources, "bookworm")).toBe("http://mirror.example.org/debian");
    expect(findMirror(sources, "trixie")).toBeNull();
  });

  it("finds it in one-line sources, with and without options", () => {
    expect(
      findMirror(
        "# deb http://no.example.org x main\ndeb [arch=amd64 signed-by=/k] http://a.example.org/debian bookworm main\n",
        "bookworm",
      ),
    ).toBe("http://a.example.org/debian");
    expect(findMirror("deb http://b.example.org/debian bookworm-updates main\n", "bookworm")).toBeNull();
    expect(findMirror("deb cdrom:[Debian]/ bookworm main\n", "bookworm")).toBeNull();
  });

  it("does not take another repository that is named after the release", () => {
    const sources = `deb http://vendor.example.com/linux bookworm main
deb http://a.example.org/mirror/debian/ bookworm main contrib

Types: deb
URIs: http://other.example.com/debian
Suites: bookworm
Components: stable
`;
    expect(findMirror(sources, "bookworm")).toBe("http://a.example.org/mirror/debian/");
    const updates = "deb http://b.example.org/d bookworm main\ndeb http://b.example.org/d bookworm-updates main\n";
    expect(findMirror(sources + updates, "bookworm")).toBe("http://b.example.org/d");
  });
});
