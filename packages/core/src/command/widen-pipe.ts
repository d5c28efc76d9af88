import type { Aide } from "../aide/aide.ts";
import { PERL } from "../process/perl.ts";

/** Four times what a pipe holds by itself; with more nothing is faster. */
const WIDE_BYTES = 256 * 1024;
/** O_NONBLOCK, and F_SETPIPE_SZ, which Perl has no name for. */
const SCRIPT = `sysopen my $pipe, $ARGV[0], 2048 or die; fcntl $pipe, 1031, ${WIDE_BYTES} or die`;

/**
 * Lets a pipe of this process hold more, so that who writes to it and who reads it wait less for each other. Where that cannot be
 * done, it stays as it is.
 */
export function widenPipe(fd: number, aide: Aide | undefined): void {
  // A number that has been given to another file since then leads to one that is no pipe, or to one that can be wide as well.
  const argv = [PERL, "-e", SCRIPT, `/proc/${process.pid}/fd/${fd}`];
  const widening = aide?.run({ argv, env: {}, cwd: undefined, outputPath: undefined, maxOutputBytes: 0 });
  widening?.ended.catch(() => undefined);
}
