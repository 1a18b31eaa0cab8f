# PID 1 of a cell: sh init.sh CODE_FILE COMMAND...
# Positional parameters only: a variable of this shell could shadow one of the job.

# Not empty: ruby looks at the first byte before its bootstrap can run.
(umask 022 && echo >"$1")
shift

case ${HOTCELL_WIRING-} in
  inherit)
    unset HOTCELL_WIRING
    (
      { echo 500 >/proc/self/oom_score_adj; } 2>/dev/null
      exec "$@"
    )
    exit
    ;;
esac
unset HOTCELL_WIRING

# In the foreground the shell tells of a signal (`Killed`) on its stderr, so that the
# server can tell a signal from the exit status 128 + n.
exec 2>/run/hotcell/status
(
  { echo 500 >/proc/self/oom_score_adj; } 2>/dev/null
  exec "$@"
) </run/hotcell/in >/run/hotcell/out 2>/run/hotcell/err
echo "exit $?" >&2
