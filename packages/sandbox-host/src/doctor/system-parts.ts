import { readFile } from "node:fs/promises";

/** A part of the operating system, as `system-parts.json` tells it. The bootstrap installs from the same file. */
export interface SystemPart {
  readonly name: string;
  readonly commands: readonly string[];
  readonly devices?: readonly string[];
  readonly package: string;
  readonly suite: "release" | "backports";
  readonly version?: { readonly argv: readonly [string, ...string[]]; readonly pattern: string };
  readonly minimumVersion?: string;
  readonly static?: boolean;
  readonly insteadOf?: {
    readonly argv: readonly [string, ...string[]];
    readonly prints: string;
    readonly name: string;
  };
  readonly neededFor: string;
  readonly without: string;
}

export async function readSystemParts(): Promise<readonly SystemPart[]> {
  const text = await readFile(new URL("../../system-parts.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { readonly parts: readonly SystemPart[] }).parts;
}
