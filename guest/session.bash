# Read by the bash of a session's command before the command itself (BASH_ENV): at its end it says in which folder it is.
# On a descriptor of the agent, not into a file: a full disk must not move anybody.
unset BASH_ENV
# Programs of the project come first; only the cell knows what comes after them.
[[ -z ${HOTCELL_PATH-} ]] || PATH=$HOTCELL_PATH:$PATH
unset HOTCELL_PATH
trap '{ builtin printf %s "$PWD" >&19; } 2>/dev/null' EXIT
