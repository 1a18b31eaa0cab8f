# shellcheck shell=bash
# Preload for a hot bash (BASH_ENV): waits for the job before the script is opened, writes
# the script, removes its own traces and lets bash go on natively.
__hotcell_last=$_
# shellcheck source=guest/bootstrap/frame.bash
. "${BASH_ENV%/*}/frame.bash"
unset -v BASH_ENV

__hotcell_enter() {
  local entry fresh=
  for entry in "${__hotcell_env[@]}"; do
    # Names that bash itself gives a meaning, or that no variable can have: a fresh bash.
    case ${entry%%=*} in
      '' | [!A-Za-z_]* | *[!A-Za-z0-9_]* | _ | BASH* | SHELLOPTS | SHLVL | IFS | PS4 | OPT* | ENV | \
        LC_* | LANG* | LD_* | TEXTDOMAIN* | POSIX* | HIST* | GLOBIGNORE | EXECIGNORE | TMOUT | TIMEFORMAT | \
        *PWD | UID | EUID | PPID | RANDOM | SRANDOM | SECONDS | EPOCH* | LINENO | FUNC* | GROUPS | DIRSTACK | \
        PIPESTATUS | COMP_* | COMPREPLY | CHILD_MAX | COLUMNS | LINES | HOST* | MACHTYPE | OSTYPE | MAIL* | \
        IGNOREEOF | MALLOC_* | GLIBC_* | INSIDE_EMACS | __hotcell* | entry | fresh)
        fresh=yes
        ;;
    esac
  done
  [ -z "$fresh" ] || exec env -- "${__hotcell_env[@]}" "$BASH" "$0" "${__hotcell_args[@]}"
  for entry in "${__hotcell_env[@]}"; do
    export "${entry%%=*}=${entry#*=}"
  done
  hash -r
  SECONDS=0
}

__hotcell_leave() {
  unset -v __hotcell_last __hotcell_size __hotcell_value __hotcell_args __hotcell_env
  unset -f __hotcell_fail __hotcell_length __hotcell_field __hotcell_count __hotcell_extra \
    __hotcell_frame __hotcell_enter __hotcell_leave
}

__hotcell_frame "$0"
__hotcell_enter
set -- "${__hotcell_args[@]}"
# The last word of the last command is what the job finds in $_.
__hotcell_leave "$__hotcell_last"
