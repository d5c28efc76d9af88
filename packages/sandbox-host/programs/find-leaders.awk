# Prints the markers of the records whose process is alive. A process that was started from outside has no parent, which tells it from
# all that it started; it carries its marker or, having cleared its environment, is known by its pid. `records` are words
# `marker:pid`, `variable` is the name of the marker variable; the input is that of list-tree.awk. The owner is
# src/runtime/gvisor/exec/process-tree.ts.
BEGIN { count = split(records, word, " "); for (i = 1; i <= count; i++) { split(word[i], part, ":"); leader[part[1]] = part[2] } }
/^\/proc\/[0-9]+\/environ: / {
  value = substr($0, index($0, ": ") + 2)
  if (index(value, variable "=") == 1) { split($0, part, "/"); mark[part[3]] = substr(value, index(value, "=") + 1) }
  next
}
/^[0-9]+ \(/ {
  pid = $1; rest = $0; sub(/^.*\) /, "", rest); split(rest, field, " ")
  if (pid > 1 && field[2] == 0 && field[1] != "Z" && field[1] != "X") root[pid] = 1
}
END {
  for (m in leader) for (p in root) if ((p in mark) ? mark[p] == m : p == leader[m]) { print m; break }
}
