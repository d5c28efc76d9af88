import { readFile } from "node:fs/promises";

/** A part of the operating system, as `system-parts.json` tells it. The bootstrap installs from the same file. */
export interface SystemPart {
  readonly name: string;
  readonly commands: readonly [string, ...string[]];
  readonly devices?: readonly string[];
  readonly deviceRemedy?: string;
  readonly package: string;
  readonly suite: "release" | "backports";
  readonly version?: VersionQuestion;
  readonly minimumVersion?: string;
  readonly static?: boolean;
  readonly insteadOf?: Alternative;
  readonly trial?: Trial;
  readonly neededFor: string;
  readonly without: string;
}

type Argv = readonly [string, ...string[]];

export interface VersionQuestion {
  readonly argv: Argv;
  /** Its first group is the version. */
  readonly pattern: string;
  /** A version that nobody tells is no fault of the part. */
  readonly optional?: boolean;
}

/** Something else that does the part's work. */
export interface Alternative {
  readonly name: string;
  readonly commands: readonly string[];
  readonly argv: Argv;
  readonly prints: string;
  /** What helps where it fails the part's trial. */
  readonly trialRemedy: string;
}

/** A command that succeeds where the part works. */
export interface Trial {
  readonly argv: Argv;
  /** What it prints where the part only waits for the host to start it. */
  readonly startable: string;
  readonly remedy: string;
}

export async function readSystemParts(): Promise<readonly SystemPart[]> {
  const text = await readFile(new URL("../../system-parts.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { readonly parts: readonly SystemPart[] }).parts;
}
