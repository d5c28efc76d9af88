import { INIT_PROGRAM } from "./oci-spec.ts";

/** Names the execution that a process belongs to; children inherit it, also those that leave the process group. */
export const MARKER_VARIABLE = "TURNBOX_EXEC";

/** The processes of one execution. */
export interface Tree {
  /** The value of the marker variable. */
  readonly marker: string;
  /** The process itself, which leads a group; absent where it has ended, since pids are used again. */
  readonly pid?: number;
  /** What an earlier look has found, as `pid:start-time` words. */
  readonly known?: string;
}

/**
 * Prints `pid:start-time` of every process of the tree: those that carry the marker, are in the leader's group or were known
 * before, and all descendants of those, for a child may have cleared its environment and left the group. Zombies have
 * ended, and PID 1 is ours. Input: `strings -f` of all environments, then all `/proc/<pid>/stat`.
 */
const LIST_AWK = `
BEGIN { count = split(known, word, " "); for (i = 1; i <= count; i++) { split(word[i], part, ":"); seen[part[1]] = part[2] } }
/^\\/proc\\/[0-9]+\\/environ: / {
  if (substr($0, index($0, ": ") + 2) == marker) { split($0, part, "/"); hit[part[3]] = 1 }
  next
}
/^[0-9]+ \\(/ {
  pid = $1; rest = $0; sub(/^.*\\) /, "", rest); split(rest, field, " ")
  state[pid] = field[1]; parent[pid] = field[2]; group[pid] = field[3]; start[pid] = field[20]
}
END {
  for (p in parent) if ((leader > 0 && group[p] == leader) || ((p in seen) && seen[p] == start[p])) hit[p] = 1
  do { grew = 0; for (p in parent) if (!(p in hit) && (parent[p] in hit)) { hit[p] = 1; grew = 1 } } while (grew)
  for (p in hit) if (p + 0 > 1 && (p in state) && state[p] != "Z" && state[p] != "X") printf "%s:%s ", p, start[p]
}`;

/** An execution that there is a record of; `pid` is 0 where it is not known. */
export interface ExecRecord {
  readonly marker: string;
  readonly pid: number;
}

/**
 * Prints the markers of the records whose process is alive. A process that was started from outside has no parent, which
 * tells it from all that it started; it carries its marker, or, having cleared its environment, is known by its pid.
 */
const LED_AWK = `
BEGIN { count = split(records, word, " "); for (i = 1; i <= count; i++) { split(word[i], part, ":"); leader[part[1]] = part[2] } }
/^\\/proc\\/[0-9]+\\/environ: / {
  value = substr($0, index($0, ": ") + 2)
  if (index(value, "${MARKER_VARIABLE}=") == 1) { split($0, part, "/"); mark[part[3]] = substr(value, index(value, "=") + 1) }
  next
}
/^[0-9]+ \\(/ {
  pid = $1; rest = $0; sub(/^.*\\) /, "", rest); split(rest, field, " ")
  if (pid > 1 && field[2] == 0 && field[1] != "Z" && field[1] != "X") root[pid] = 1
}
END {
  for (m in leader) for (p in root) if ((p in mark) ? mark[p] == m : p == leader[m]) { print m; break }
}`;

/** Prints all environments and all states, as the awk programs read them. */
const READ_ALL = "{ $B strings -f -n 8 /proc/[0-9]*/environ; $B cat /proc/[0-9]*/stat; } 2>/dev/null";

/** Common to the two programs that follow: \`$1\` is the marker, \`$2\` the leader or 0, \`$3\` what is known. */
const LIST_FUNCTION = `
B=${INIT_PROGRAM}
list() {
  ${READ_ALL} |
    $B awk -v marker="${MARKER_VARIABLE}=$1" -v leader="$2" -v known="$3" '${LIST_AWK}'
}`;

/**
 * Freezes the tree until nothing new turns up in it, so that no child escapes between look and kill; then kills it, and
 * looks until nothing of it is left. Exit 0 says that this was seen.
 */
const SWEEP_SCRIPT = `${LIST_FUNCTION}
known=$3 stopped=" " round=0
while [ $round -lt 20 ]; do
  fresh=
  known=$(list "$1" "$2" "$known")
  for entry in $known; do
    case $stopped in *" \${entry%%:*} "*) ;; *) fresh="$fresh \${entry%%:*}" ;; esac
  done
  [ -n "$fresh" ] || break
  kill -s STOP $fresh 2>/dev/null
  stopped="$stopped$fresh "
  round=$((round + 1))
done
rest=$known round=0
while [ $round -lt 50 ]; do
  pids=
  for entry in $rest; do pids="$pids \${entry%%:*}"; done
  [ -z "$pids" ] || kill -s KILL $pids 2>/dev/null
  rest=$(list "$1" 0 "$known")
  [ -n "$rest" ] || exit 0
  round=$((round + 1))
done
exit 1`;

/** Prints the tree, for a later sweep: its members may lose their parents by what happens now. Then asks it to end. */
const TERMINATE_SCRIPT = `${LIST_FUNCTION}
list "$1" "$2" "$3"
kill -s TERM -- "-$2"`;

/** Sends the signal `$4` to each process of the tree once, until no new one turns up. */
const SIGNAL_SCRIPT = `${LIST_FUNCTION}
sent=" " round=0
while [ $round -lt 20 ]; do
  fresh=
  for entry in $(list "$1" "$2" "$3"); do
    case $sent in *" \${entry%%:*} "*) ;; *) fresh="$fresh \${entry%%:*}" ;; esac
  done
  [ -n "$fresh" ] || exit 0
  kill "-$4" $fresh 2>/dev/null
  sent="$sent$fresh "
  round=$((round + 1))
done`;

const LED_SCRIPT = `
B=${INIT_PROGRAM}
${READ_ALL} | $B awk -v records="$1" '${LED_AWK}'`;

/** The program that prints which of the recorded executions still have their process, a marker a line. */
export function ledArgv(records: readonly ExecRecord[]): readonly string[] {
  const words = records.map(({ marker, pid }) => `${marker}:${String(pid)}`);
  return [INIT_PROGRAM, "sh", "-c", LED_SCRIPT, "turnbox", words.join(" ")];
}

/** The program that ends a tree. It is the runtime's own and static, since a template may have nothing. */
export function sweepArgv(tree: Tree): readonly string[] {
  return argvOf(SWEEP_SCRIPT, tree);
}

/** The program that asks a tree to end and prints what is known of it. */
export function terminateArgv(tree: Tree & { readonly pid: number }): readonly string[] {
  return argvOf(TERMINATE_SCRIPT, tree);
}

/** The program that signals a tree. */
export function signalArgv(tree: Tree, signal: number): readonly string[] {
  return [...argvOf(SIGNAL_SCRIPT, tree), String(signal)];
}

function argvOf(script: string, { marker, pid, known }: Tree): readonly string[] {
  return [INIT_PROGRAM, "sh", "-c", script, "turnbox", marker, String(pid ?? 0), known ?? ""];
}
