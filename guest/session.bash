# shellcheck shell=bash
# Read by the bash of a session's command before the command itself (BASH_ENV): at its end it says in which folder it is.
# On a descriptor of the agent, not into a file: a full disk must not move anybody.
unset BASH_ENV
# Programs must not inherit that descriptor. Bash closes for them what it keeps of a stdout that is redirected for a while,
# and every copy of that; where it keeps it is not the same in every version.
{
  {
    for HOTCELL_FD in {10..18} {20..39}; do
      [[ /proc/self/fd/$HOTCELL_FD -ef /proc/self/fd/19 ]] && exec 19>&- 19>&"$HOTCELL_FD" && break
    done
  } >&-
} 2>/dev/null >&19
# Programs of the project come first; only the cell knows what comes after them.
[[ -z ${HOTCELL_PATH-} ]] || PATH=$HOTCELL_PATH:$PATH
unset HOTCELL_FD HOTCELL_PATH
trap '{ builtin printf %s "$PWD" >&19; } 2>/dev/null' EXIT
