# Starts one command on a FIFO and a file, waits for it and writes down its exit code. It has no parent: it outlives the service,
# and with it does the knowledge of how the command ended. The owner is src/runtime/execution/waiter.ts; /bin/sh of the host runs it.
#
# It holds the FIFO open for both directions, so that the command sees no end of its input when a writer goes away; on SIGUSR1 it
# closes it. $1 is the directory, $2 the output, the rest is the command. The outputs are opened one by one, because gVisor does not
# take the same open file twice. A wait that the signal broke off returns 138 whether the command lives or not, and returns the
# truth when it is repeated.
#
# First it joins the control groups $5, a list with colons, so that what it starts is in them too.
#
# When the output grows beyond $3 bytes and no service tends it, the script $4 is run, again and again. While `guarding` exists, it
# may be about to be. As long as a service tends it there is nothing to look for: it looks for the service alone, which takes no
# process, every two seconds.
dir=$1 out=$2 limit=$3 guard=$4 groups=$5 watcher= broken=
shift 5
IFS=:
for group in $groups; do echo 0 >"$group/cgroup.procs" || exit 125; done
unset IFS
exec 3<>"$dir/input"
trap 'exec 3>&-; broken=1' USR1
"$@" <"$dir/input" >>"$out" 2>>"$out" 3>&- &
child=$!
echo "$child" >"$dir/child.new" && mv "$dir/child.new" "$dir/child"
if [ -n "$guard" ]; then
  is_tended() {
    read -r pid start <"$dir/tended" && read -r stat <"/proc/$pid/stat" || return 1
    set -- ${stat##*) }
    [ "${20}" = "$start" ] && [ "$1" != Z ]
  }
  (
    exec 3>&-
    while kill -0 "$child"; do
      if is_tended; then sleep 2; continue; fi
      sleep 0.5
      [ "$(stat -c %s "$out" || echo 0)" -gt "$limit" ] || continue
      : >"$dir/guarding"
      is_tended || eval "$guard"
      rm -f "$dir/guarding"
    done
  ) >/dev/null 2>&1 &
  watcher=$!
fi
echo "$$" >"$dir/waiter.new" && mv "$dir/waiter.new" "$dir/waiter"
while :; do
  broken=
  wait "$child"
  code=$?
  { [ -n "$broken" ] && [ "$code" -eq 138 ]; } || break
done
echo "$code" >"$dir/exit.new" && mv "$dir/exit.new" "$dir/exit"
[ -z "$watcher" ] || kill "$watcher" 2>/dev/null
