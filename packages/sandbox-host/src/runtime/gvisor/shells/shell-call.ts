import type { Readable } from "node:stream";
import type { ExecSpec } from "../../runtime.ts";

/** A call that a waiting shell can take: `bash -c SCRIPT`. */
export interface ShellCall {
  readonly script: string;
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** Far below what a FIFO holds, so that a script is never written in part. */
const MAX_SCRIPT_BYTES = 16 * 1024;

/**
 * What a waiting shell reads at first, of characters that are one byte each in every locale: most calls fit into it. Bash
 * reads so much at once; a line it would read byte by byte, and each read is a turn through the sentry.
 */
const HEAD_BYTES = 512;
const PLAIN = /^[\x20-\x7e]*$/;

const read = (bytes: number): string => `read -r -N ${bytes} BASH_EXECUTION_STRING||exit`;
/** Bytes, not characters; the locale takes its time to change and to come back. */
const readBytes = (text: string): string => `LC_ALL=C ${read(Buffer.byteLength(text))}`;
const RUN = 'eval "$BASH_EXECUTION_STRING"';
/** Limits of a shell that waited are those of others that wait, too, and of a shell below it its own. */
const RUN_BELOW = `(${RUN})`;
const SETS_LIMITS = /\bulimit\b/;

/** Variables that a shell acts upon when it starts, or that decide which shell it is. */
const READ_AT_START =
  /^(BASH.*|ENV|SHELLOPTS|POSIXLY_CORRECT|PATH|LANG|LANGUAGE|LC_.*|LD_.*|SHLVL|TZ|PS4|TURNBOX_EXEC)$/;
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** The command as a script for a shell, or undefined if it is something else, or too long. */
export function parseShellCall({ argv, env, cwd }: ExecSpec): ShellCall | undefined {
  const [program, option, script, ...rest] = argv;
  if (program !== "bash" || option !== "-c" || script === undefined || rest.length > 0) return undefined;
  if (Buffer.byteLength(script) > MAX_SCRIPT_BYTES) return undefined;
  return { script, env, cwd };
}

/**
 * Gives the shell the limits of the container's spec again, all that the sentry lets a process set; see `SharedLimits`. Fails if a
 * hard one was lowered; the next start from outside puts that back.
 */
const RESTORE_LIMITS =
  "ulimit -n 65536 -l 64 -c unlimited -d unlimited -f unlimited -t unlimited -u unlimited -v unlimited&&" +
  "ulimit -Hs unlimited&&ulimit -Ss 8192";

/**
 * The command of a shell that waits for a script. It reads its head and does it, and has no variable that a script has
 * not. It reads not one byte more than the head says: what comes behind is the input of the script.
 */
export const waitingShell: readonly [string, ...string[]] = ["bash", "-c", `${read(HEAD_BYTES)};${RUN}`];

/** A shell as it waits. */
export interface WaitingShell {
  readonly env: Readonly<Record<string, string>>;
  readonly greeting: string;
  /** `lowered` if they may be: then they are restored first, and the shell ends before it begins if that fails. */
  readonly limits: "intact" | "lowered";
}

/**
 * What makes a shell that waits in one environment do a call of another one, and say `greeting` on its standard output
 * right before it does: without it, nothing of the script has run. Undefined if a shell that is there already would
 * behave in another way than a new one.
 */
export function scriptFor(call: ShellCall, { env, greeting, limits }: WaitingShell): string | undefined {
  const changed = Object.entries(call.env).filter(([name, value]) => env[name] !== value);
  const removed = Object.keys(env).filter((name) => !(name in call.env));
  const names = [...changed.map(([name]) => name), ...removed];
  // A new process without a HOME gets that of its user.
  if (names.some((name) => !NAME.test(name) || READ_AT_START.test(name)) || removed.includes("HOME")) return undefined;
  const prepare = [
    ...(limits === "intact" ? [] : [`{ ${RESTORE_LIMITS};} 2>/dev/null||exit`]),
    `cd -- ${quote(call.cwd)}||exit`,
    ["unset OLDPWD", ...removed].join(" "),
    ...changed.filter(([name]) => name !== "PWD").map(([name, value]) => `export ${name}=${quote(value)}`),
    "SECONDS=0",
    `printf %s ${greeting}`,
    ...(SETS_LIMITS.test(call.script) ? [RUN_BELOW] : [...becomeProgram(call), RUN]),
  ].join(";");
  return inOneRead(prepare, call.script) ?? inThreeReads(prepare, call.script);
}

/** The head is all of it; undefined if it has no room. */
function inOneRead(prepare: string, script: string): string | undefined {
  const all = `BASH_EXECUTION_STRING=${quote(script)};${prepare}`;
  return all.length <= HEAD_BYTES && PLAIN.test(all) ? all.padEnd(HEAD_BYTES) : undefined;
}

/** The head has the shell read what it does then, and that has it read the script, as it is. */
function inThreeReads(prepare: string, script: string): string {
  const then = `${readBytes(script)};${prepare}`;
  return `${readBytes(then)};${RUN}`.padEnd(HEAD_BYTES) + then + script;
}

/** Words, plain or in quotes that nothing is expanded in, and patterns of names. */
const SIMPLE_COMMAND = /^([a-z][a-z0-9_.+-]*)(?: +(?:[A-Za-z0-9_./:=,@%+*?-]|'[^'\n]*'|"[^"$`\\!\n]*")+)* *$/;
/** What a shell takes for its own: reserved words, and builtins. */
const SHELL_WORDS: ReadonlySet<string> = new Set(
  (
    "case coproc do done elif else esac fi for function if in select then time until while " +
    "alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable eval " +
    "exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read " +
    "readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias unset wait"
  ).split(" "),
);
/** Variables by which a shell has functions or traps before its script begins. */
const BRINGS_CODE = /^(BASH.*|ENV|SHELLOPTS|POSIXLY_CORRECT)$/;

/**
 * A shell that is given one simple command by `-c` becomes its program, if it is one and not a function or a builtin; a
 * script that is evaluated would start a second process for it, which is the most expensive thing to do inside. Only a
 * name that the shell has hashed the path of is a program.
 */
function becomeProgram({ script, env }: ShellCall): readonly string[] {
  const [, name] = SIMPLE_COMMAND.exec(script) ?? [];
  if (name === undefined || SHELL_WORDS.has(name) || Object.keys(env).some((key) => BRINGS_CODE.test(key))) return [];
  const path = `\${BASH_CMDS[${name}]-}`;
  return [`hash ${name} 2>/dev/null`, `[ -n "${path}" ]&&_=${path} exec ${script}`];
}

const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/** Takes the greeting off the output, or says that the output has ended before it, or the patience. */
export async function receiveGreeting(
  output: Readable,
  greeting: string,
  patience: AbortSignal,
): Promise<"greeting" | "end" | "silence"> {
  for (;;) {
    const first = output.read(greeting.length) as Buffer | null;
    if (first?.toString("latin1") === greeting) return "greeting";
    if (output.readableEnded || output.destroyed) return "end";
    // Whatever says something else is not to be trusted with a second run.
    if (first !== null || patience.aborted) return "silence";
    await readable(output, patience);
  }
}

/** Settles when there may be something to read, or nothing will come. */
async function readable(output: Readable, patience: AbortSignal): Promise<void> {
  const events = ["readable", "end", "close"] as const;
  await new Promise<void>((resolve) => {
    const settle = (): void => {
      for (const event of events) output.off(event, settle);
      patience.removeEventListener("abort", settle);
      resolve();
    };
    for (const event of events) output.on(event, settle);
    patience.addEventListener("abort", settle, { once: true });
  });
}
