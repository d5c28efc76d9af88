import { fileURLToPath } from "node:url";

/** Part of every Debian, and the only thing there that makes any system call without a compiler. */
export const PERL = "/usr/bin/perl";

/** The programs in `perl/` of this package, which lies as far from its sources as from what is built of them. */
export type PerlProgram = "ask-membarrier" | "helper" | "widen-pipe" | "without-membarrier";

/** The path of a program for `PERL`. */
export function perlProgram(name: PerlProgram): string {
  return fileURLToPath(new URL(`../../perl/${name}.pl`, import.meta.url));
}
