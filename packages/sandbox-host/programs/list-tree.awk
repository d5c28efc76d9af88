# Prints `pid:start-time` of every process of a tree: those that carry the marker, are in the leader's group or were known before, and
# all descendants of those, because a child may have cleared its environment and left the group. Zombies have ended, and PID 1 is the
# runtime's own. Input: `strings -f` of all environments, then all `/proc/<pid>/stat`. `marker` is a variable with its value, `leader`
# a pid or 0, `known` what an earlier run has printed. The owner is src/runtime/gvisor/exec/process-tree.ts.
BEGIN { count = split(known, word, " "); for (i = 1; i <= count; i++) { split(word[i], part, ":"); seen[part[1]] = part[2] } }
/^\/proc\/[0-9]+\/environ: / {
  if (substr($0, index($0, ": ") + 2) == marker) { split($0, part, "/"); hit[part[3]] = 1 }
  next
}
/^[0-9]+ \(/ {
  pid = $1; rest = $0; sub(/^.*\) /, "", rest); split(rest, field, " ")
  state[pid] = field[1]; parent[pid] = field[2]; group[pid] = field[3]; start[pid] = field[20]
}
END {
  for (p in parent) if ((leader > 0 && group[p] == leader) || ((p in seen) && seen[p] == start[p])) hit[p] = 1
  do { grew = 0; for (p in parent) if (!(p in hit) && (parent[p] in hit)) { hit[p] = 1; grew = 1 } } while (grew)
  for (p in hit) if (p + 0 > 1 && (p in state) && state[p] != "Z" && state[p] != "X") printf "%s:%s ", p, start[p]
}
