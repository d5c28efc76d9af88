# Looks at and ends the processes of executions, from inside the container. A template may have nothing, so the busybox that the
# runtime brings runs it. The owner is src/runtime/gvisor/exec/process-tree.ts.
#
# $1 is that busybox, $2 the marker variable, $3 the awk program to look with, $4 what to do. Of find-leaders, $5 are the records. Of
# all others, $5 is the marker of a tree, $6 the leader or 0, $7 what is known of the tree; $8 is the signal to send.
busybox=$1 variable=$2 program=$3 action=$4
shift 4

# Prints all environments and all states, as the awk programs read them.
read_all() { { $busybox strings -f -n 8 /proc/[0-9]*/environ; $busybox cat /proc/[0-9]*/stat; } 2>/dev/null; }

# $1 is the marker, $2 the leader or 0, $3 what is known.
list() { read_all | $busybox awk -v marker="$variable=$1" -v leader="$2" -v known="$3" "$program"; }

# Freezes the tree until nothing new turns up in it, so that no child escapes between look and kill; then kills it, and looks until
# nothing of it is left. Exit 0 says that this was seen.
sweep() {
  known=$3 stopped=" " round=0
  while [ $round -lt 20 ]; do
    fresh=
    known=$(list "$1" "$2" "$known")
    for entry in $known; do
      case $stopped in *" ${entry%%:*} "*) ;; *) fresh="$fresh ${entry%%:*}" ;; esac
    done
    [ -n "$fresh" ] || break
    kill -s STOP $fresh 2>/dev/null
    stopped="$stopped$fresh "
    round=$((round + 1))
  done
  rest=$known round=0
  while [ $round -lt 50 ]; do
    pids=
    for entry in $rest; do pids="$pids ${entry%%:*}"; done
    [ -z "$pids" ] || kill -s KILL $pids 2>/dev/null
    rest=$(list "$1" 0 "$known")
    [ -n "$rest" ] || return 0
    round=$((round + 1))
  done
  return 1
}

# Prints the tree, for a later sweep: its members may lose their parents by what happens now. Then asks it to end.
terminate() {
  list "$1" "$2" "$3"
  kill -s TERM -- "-$2"
}

# Sends the signal to each process of the tree once, until no new one turns up.
signal() {
  sent=" " round=0
  while [ $round -lt 20 ]; do
    fresh=
    for entry in $(list "$1" "$2" "$3"); do
      case $sent in *" ${entry%%:*} "*) ;; *) fresh="$fresh ${entry%%:*}" ;; esac
    done
    [ -n "$fresh" ] || return 0
    kill "-$4" $fresh 2>/dev/null
    sent="$sent$fresh "
    round=$((round + 1))
  done
}

case $action in
  sweep) sweep "$@" ;;
  terminate) terminate "$@" ;;
  signal) signal "$@" ;;
  find-leaders) read_all | $busybox awk -v variable="$variable" -v records="$1" "$program" ;;
  *) exit 2 ;;
esac
