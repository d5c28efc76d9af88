import { readFile } from "node:fs/promises";

/** A part of the operating system, from `system-parts.json`. The bootstrap installs from the same file. */
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
  /** Whether a part without a known version is whole. Default is no. */
  readonly optional?: boolean;
}

/** Another program that does the part's work. */
export interface Alternative {
  readonly name: string;
  readonly commands: readonly string[];
  readonly argv: Argv;
  readonly prints: string;
  /** The remedy if it fails the part's trial. */
  readonly trialRemedy: string;
}

/** A command that succeeds if the part works. */
export interface Trial {
  readonly argv: Argv;
  /** A pattern of its error output if the part is only not started yet, which the host does. */
  readonly startable: string;
  readonly remedy: string;
}

export async function readSystemParts(): Promise<readonly SystemPart[]> {
  const text = await readFile(new URL("../../system-parts.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { readonly parts: readonly SystemPart[] }).parts;
}
