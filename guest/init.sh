# shellcheck shell=sh
# PID 1 of a cell: sh init.sh CODE_FILE COMMAND...
# Positional parameters only: a variable of this shell could shadow one of the job.

# Not empty: ruby looks at the first byte before its bootstrap can run.
[ -z "$1" ] || (umask 022 && echo >"$1")
shift

# The only signal that a shell listens to as PID 1, and that the program could send it.
trap '' INT
exec 2>/run/hotcell/status 3</run/hotcell/hold 4</run/hotcell/in 5>/run/hotcell/out 6>/run/hotcell/err
# From now on the server may close its ends: nobody is left waiting for a partner.
echo up >&2

# In the foreground the shell tells of a signal (`Killed`) on its stderr, so that the
# server can tell a signal from the exit status 128 + n.
(
  # When memory runs out, the program goes first and this shell last.
  { echo 500 >/proc/self/oom_score_adj; } 2>/dev/null
  trap - INT
  exec "$@" <&4 >&5 2>&6 3<&- 4<&- 5>&- 6>&-
)
echo "exit $?" >&2

# Whatever the program left running ends now; with it the last holder of the streams is gone.
exec 2>&- 4<&- 5>&- 6>&-
kill -9 -1
# Stay until the server has read what the kernel counted (or is gone itself): with this
# process the cgroup goes, too.
read -r _ <&3
