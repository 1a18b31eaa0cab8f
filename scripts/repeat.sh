# shellcheck shell=bash
# Sourced by test.sh, with run_vitest at hand: the same tests again and again, for those that fail now and then.

# Two loops, as many as the processors of a small machine. They end with this script, however that ends.
LOADS=()
start_load() {
  for _ in 1 2; do
    while kill -0 "$$" 2>/dev/null; do :; done &
    LOADS+=("$!")
  done
}

stop_load() {
  local pid
  for pid in ${LOADS[@]+"${LOADS[@]}"}; do
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  LOADS=()
}

# repeat_vitest TIMES yes|no ARGUMENT…: stops at the first failure, whose output it prints and keeps; of the others it tells
# that they passed. `yes`: beside load.
repeat_vitest() {
  local times=$1 load=$2 turn folder log began status=0
  shift 2
  folder=$(mktemp -d "${TMPDIR:-/tmp}/hotcell-repeat.XXXXXX")
  [[ $load == no ]] || start_load
  for ((turn = 1; turn <= times && status == 0; turn++)); do
    log=$folder/run-$turn.log
    began=$SECONDS
    run_vitest "$@" >"$log" 2>&1 </dev/null || status=$?
    if ((status == 0)); then
      say "run $turn of $times passed in $((SECONDS - began)) s"
      rm "$log"
    fi
  done
  stop_load
  if ((status != 0)); then
    cat "$log" >&2
    say "run $((turn - 1)) of $times failed after $((turn - 2)) that passed; its output is above and in $log"
    return "$status"
  fi
  rmdir "$folder"
  say "all $times runs passed"
}
