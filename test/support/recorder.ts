import { execFileSync, spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "./process.ts";

/** A program that was started by its name, as it saw itself. */
export interface Started {
  readonly program: string;
  /** Its arguments, each as bash would quote it. */
  readonly args: readonly string[];
  /** Descriptors from 3 to 255 that were open in it, but for its own script. */
  readonly descriptors: readonly number[];
}

/** Programs in front of the real ones that write down how they are started, and become the real ones. */
export interface Recorder extends Disposable {
  /** A PATH in which they come first. */
  readonly path: string;
  /** Everything that was started so far, in order. */
  started(): readonly Started[];
}

export async function createRecorder(programs: readonly string[]): Promise<Recorder> {
  const directory = mkdtempSync(join(tmpdir(), "turnbox-recorder-"));
  const log = join(directory, "started.log");
  const pipe = join(directory, "pipe");
  writeFileSync(log, "");
  // What boots a sandbox sees the machine's files read-only, but may write to a named pipe of it.
  execFileSync("mkfifo", [pipe]);
  const copier = spawn("/bin/sh", ["-c", 'exec cat <>"$1" >>"$2"', "sh", pipe, log], { stdio: "ignore" });
  for (const program of programs) {
    const real = (await run("/bin/sh", ["-c", `command -v ${program} || true`])).stdout.trim();
    const script = `#!/bin/bash
line=${program}
for ((n = 3; n < 256; n++)); do [ -e /proc/$$/fd/$n ] && ! [ /proc/$$/fd/$n -ef "$0" ] && line+=" $n"; done
printf -v args ' %q' "$@"
[ $# = 0 ] && args=
{ echo "$line |$args" >> ${log}; } 2>/dev/null || echo "$line |$args" > ${pipe}
exec ${real === "" ? "/nonexistent" : real} "$@"
`;
    writeFileSync(join(directory, program), script);
    chmodSync(join(directory, program), 0o755);
  }
  return {
    path: `${directory}:${process.env["PATH"] ?? ""}`,
    started: () =>
      readFileSync(log, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => {
          const [before = "", ...rest] = line.split(" |");
          const [program = "", ...descriptors] = before.split(" ");
          const args = rest.join(" |").trim();
          return { program, args: args === "" ? [] : args.split(" "), descriptors: descriptors.map(Number) };
        }),
    [Symbol.dispose]: () => {
      copier.kill("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
