import { text } from "node:stream/consumers";
import type { Execution, ExecSpec } from "../runtime.ts";
import { INIT_PROGRAM } from "./oci-spec.ts";
import { CAPABILITY_MASK } from "./sentry/execute-request.ts";

const DEADLINE_MS = 20_000;
const EXIT_CODE = 7;
const WORD = "through and through";

/** Looks at what a process is given: environment, directory, rights and input; says what it was told, and exits. */
const SCRIPT =
  `B=${INIT_PROGRAM}; [ "$WORD" = "${WORD}" ] && [ "$($B pwd)" = /tmp ] && ` +
  `$B grep -q "^CapEff:.${CAPABILITY_MASK.toString(16).padStart(16, "0")}$" /proc/self/status && ` +
  `$B cat && exit ${String(EXIT_CODE)}`;

const PROBE: ExecSpec = {
  argv: [INIT_PROGRAM, "sh", "-c", SCRIPT],
  env: { WORD },
  cwd: "/tmp",
  deadlineMs: DEADLINE_MS,
};

/** Runs the probe's program; undefined where it is given what it asks for, and heard. */
export async function explainFailure(
  id: string,
  runProgram: (id: string, spec: ExecSpec) => Promise<Execution>,
): Promise<string | undefined> {
  const execution = await runProgram(id, PROBE);
  execution.stdin.end(WORD);
  const [stdout, stderr, exit] = await Promise.all([text(execution.stdout), text(execution.stderr), execution.exit]);
  if (exit.kind === "exited" && exit.exitCode === EXIT_CODE && stdout === WORD) return undefined;
  return `the probe ended with ${JSON.stringify({ exit, stdout, stderr })}`;
}
