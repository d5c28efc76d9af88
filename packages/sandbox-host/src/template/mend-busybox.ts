/**
 * The options of wget in a BusyBox that was built without timeouts: it takes the number after -T and stores it through a
 * null pointer, which ends it by a segmentation fault.
 */
const FATAL = "^cqSO:o:P:Y:U:T:+t:n::\0";
/**
 * The same options in the same order and length, with -T as a word that is ignored, as -t is. In exchange the value of -Y
 * has to follow it without a space.
 */
const HARMLESS = "^cqSO:o:P:Y::U:T:t:n::\0";
/** How the help of a wget that has timeouts names the option. */
const TIMEOUT_OPTION = /^\s*-T\s/m;

/** Whether a BusyBox with this help of its wget may die of -T. */
export const lacksTimeouts = (help: string): boolean => !TIMEOUT_OPTION.test(help);

/**
 * Corrects a BusyBox without timeouts in place. BusyBox finds its programs in itself before it looks at PATH, so neither a
 * program of that name in front of it nor a missing link keeps a shell from what is inside (decision 0035).
 */
export function mendBusybox(program: Buffer): "mended" | "unchanged" {
  const at = program.indexOf(FATAL, 0, "latin1");
  if (at < 0 || program.includes(FATAL, at + 1, "latin1")) return "unchanged";
  program.write(HARMLESS, at, "latin1");
  return "mended";
}
