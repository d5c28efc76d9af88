/** What another adapter of `CommandRunner` is built from. */
export { DEFAULT_MAX_OUTPUT_BYTES } from "./child-command-runner.ts";
export type { ChildStdio, Stdio } from "./child-stdio.ts";
export { exitCodeOf } from "./exit-code.ts";
export { onceNotBusy, reasonOfStart, spawned, startFailure } from "./spawned.ts";
export { SYSTEM_PATH } from "./system-path.ts";
