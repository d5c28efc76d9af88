import { text } from "node:stream/consumers";
import { copyFile, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { release } from "node:os";
import { join } from "node:path";
import { hasReason, type KeyedMutex, randomToken, SandboxError } from "@turnbox/core";
import type { ExecSpec, Execution } from "../runtime.ts";
import { bootContainer, removeContainer } from "./container/boot.ts";
import { readCgroupMounts } from "./container/cgroup.ts";
import type { GvisorContext } from "./context.ts";
import { probeId, probeRoot } from "./leftovers.ts";
import { CAPABILITY_MASK } from "./exec/execute-request.ts";
import { INIT_PROGRAM } from "./container/oci-spec.ts";
import { isKnownProtocol, parseVersion } from "./runsc-command.ts";

const VERSION_DEADLINE_MS = 10_000;

/** Puts the static program in place that is PID 1 of every container and sweeps inside of it. */
export async function installInit({ layout }: GvisorContext, busyboxPath: string): Promise<void> {
  await mkdir(layout.initDirectory, { recursive: true, mode: 0o755 });
  await mkdir(layout.runscRoot, { recursive: true, mode: 0o700 });
  await mkdir(layout.containersDirectory, { recursive: true, mode: 0o700 });
  const target = join(layout.initDirectory, "busybox");
  try {
    const [source, present] = await Promise.all([stat(busyboxPath), stat(target).catch(() => undefined)]);
    if (present?.size === source.size && present.mtimeMs >= source.mtimeMs) return;
    await copyFile(busyboxPath, `${target}.new`);
    await rename(`${target}.new`, target);
  } catch (cause) {
    throw unavailable(`there is no static busybox at ${busyboxPath} (package busybox-static)`, cause);
  }
}

export async function readVersion({ runner, runscPath }: GvisorContext, signal: AbortSignal): Promise<string> {
  const spec = { command: runscPath, args: ["--version"], deadlineMs: VERSION_DEADLINE_MS };
  const { stdout } = await runner.run(spec, { signal }).catch((cause: unknown) => {
    signal.throwIfAborted();
    throw unavailable(
      hasReason(cause, "COMMAND_MISSING") ? `${runscPath} is not installed` : `${runscPath} does not run`,
      cause,
    );
  });
  const parsed = parseVersion(stdout);
  if (parsed === undefined) throw unavailable(`${runscPath} does not say what version it is`);
  if (parsed.supported === "too_old") throw unavailable(`runsc ${parsed.version} is older than 20240101`);
  return parsed.version;
}

/** Mounts, namespaces and cgroups of sandboxes are root's to make. */
export function checkRoot(uid = process.getuid?.()): void {
  if (uid !== 0) throw unavailable(`it needs root, and this process runs as uid ${String(uid)}`);
}

export async function checkCgroups(): Promise<void> {
  if ((await readCgroupMounts()).length === 0) throw unavailable("no cgroup hierarchy is mounted");
}

/** Starts a program in a container, the way that the context says. */
type RunProgram = (id: string, spec: ExecSpec) => Promise<Execution>;

interface ProofRequest {
  readonly version: string;
  readonly signal: AbortSignal;
  readonly lock: KeyedMutex;
  readonly runProgram: RunProgram;
}

/**
 * Boots a container on an empty root and runs something in it, unless that was proven on this boot of the machine. Decides
 * how processes are started from now on: by the sentry if its protocol is known and shown to do the same.
 */
export async function proveByRun(context: GvisorContext, request: ProofRequest): Promise<void> {
  const { execs, layout } = context;
  const wanted = context.helper !== undefined && isKnownProtocol(request.version) ? "sentry" : "runsc";
  const machine = await describeMachine(request.version);
  const proven = (await readFile(layout.proofPath, "utf8").catch(() => "")) === describeProof(machine, wanted);
  if (!proven) {
    const id = probeId(randomToken);
    await request.lock.run(id, async () => {
      await runProbe(context, id, request, wanted);
    });
    await writeFile(`${layout.proofPath}.new`, describeProof(machine, execs.way), { mode: 0o600 });
    await rename(`${layout.proofPath}.new`, layout.proofPath);
    return;
  }
  execs.way = wanted;
}

async function runProbe(
  context: GvisorContext,
  id: string,
  { signal, runProgram }: ProofRequest,
  wanted: "sentry" | "runsc",
): Promise<void> {
  const rootPath = probeRoot(context, id);
  await mkdir(rootPath);
  try {
    await bootContainer(context, { id, rootPath, hostname: "probe", limits: {} }, { signal });
    const failure = await explainFailure(id, runProgram);
    if (failure !== undefined) throw new Error(failure);
    if (wanted === "runsc") return;
    context.execs.way = "sentry";
    if ((await explainFailure(id, runProgram).catch(String)) !== undefined) context.execs.way = "runsc";
  } catch (cause) {
    signal.throwIfAborted();
    throw unavailable(explain(cause), cause);
  } finally {
    await removeContainer(context, id);
    await rm(rootPath, { recursive: true, force: true });
  }
}

/** What a proof holds for: another boot, kernel or runsc needs a new one. */
async function describeMachine(version: string): Promise<object> {
  const bootId = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
  return { bootId: bootId.trim(), kernel: release(), version };
}

const describeProof = (machine: object, execs: string): string => JSON.stringify({ ...machine, execs });

function unavailable(why: string, cause?: unknown): SandboxError {
  return new SandboxError("RUNTIME_UNAVAILABLE", `gVisor does not work here: ${why}`, { cause });
}

/** What a person needs to know: the runtime's own words, which are in the cause of a failed boot. */
function explain(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.cause instanceof Error ? `${thrown.message} (${thrown.cause.message})` : thrown.message;
}

const PROBE_DEADLINE_MS = 20_000;
const EXIT_CODE = 7;
const WORD = "through and through";

/** Looks at what a process is given: environment, directory, rights and input; repeats its input, and exits. */
const SCRIPT =
  `B=${INIT_PROGRAM}; [ "$WORD" = "${WORD}" ] && [ "$($B pwd)" = /tmp ] && ` +
  `$B grep -q "^CapEff:.${CAPABILITY_MASK.toString(16).padStart(16, "0")}$" /proc/self/status && ` +
  `$B cat && exit ${String(EXIT_CODE)}`;

const PROBE: ExecSpec = {
  argv: [INIT_PROGRAM, "sh", "-c", SCRIPT],
  env: { WORD },
  cwd: "/tmp",
  deadlineMs: PROBE_DEADLINE_MS,
};

/** Runs the probe's program; undefined if it gets what it asks for, and its output arrives. */
async function explainFailure(
  id: string,
  runProgram: (id: string, spec: ExecSpec) => Promise<Execution>,
): Promise<string | undefined> {
  const execution = await runProgram(id, PROBE);
  execution.stdin.end(WORD);
  const [stdout, stderr, exit] = await Promise.all([text(execution.stdout), text(execution.stderr), execution.exit]);
  if (exit.kind === "exited" && exit.exitCode === EXIT_CODE && stdout === WORD) return undefined;
  return `the probe ended with ${JSON.stringify({ exit, stdout, stderr })}`;
}
