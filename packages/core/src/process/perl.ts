/** Part of every Debian, and the only thing there that makes any system call without a compiler. */
export const PERL = "/usr/bin/perl";
