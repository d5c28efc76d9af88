import { describe, expect, it } from "@jest/globals";
import { findMirror } from "./debian.ts";

describe("findMirror", () => {
  it("finds the mirror of the release in deb822 sources, past comments and other suites", () => {
    const sources = `Types: deb
URIs: http://mirror.example.org/debian-security
Suites: bookworm-security
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
  });
});
