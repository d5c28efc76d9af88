import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Part of every Debian, and the only thing there that makes any system call without a compiler. */
export const PERL = "/usr/bin/perl";

/** The programs in other languages that a host runs. Each has one owner among the modules, which its first lines name. */
export type Program =
  | "ask-membarrier.pl"
  | "boot-launcher.pl"
  | "find-leaders.awk"
  | "git.sh"
  | "helper.pl"
  | "list-tree.awk"
  | "process-tree.sh"
  | "waiter.sh"
  | "widen-pipe.pl";

/** The path of a program in `programs/` of this package, which lies as far from its sources as from what is built of them. */
export function programPath(name: Program): string {
  return fileURLToPath(new URL(`../../programs/${name}`, import.meta.url));
}

/** The text of a program that runs without access to this machine's files, or longer than they stay unchanged. */
export function readProgram(name: Program): string {
  return readFileSync(programPath(name), "utf8");
}
