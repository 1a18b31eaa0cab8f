# shellcheck shell=bash
# For languages without a preload: `bash command.sh CODE_FILE COMMAND...` waits for the job,
# writes the code file and executes the command with the arguments of the job.
# shellcheck source=guest/bootstrap/frame.bash
. "${BASH_SOURCE%/*}/frame.bash"
__hotcell_file=$1
shift

# Bash exports these even if they were not in its environment.
mapfile -d '' -t __hotcell_old </proc/self/environ
__hotcell_drop=()
for __hotcell_name in PWD OLDPWD SHLVL _; do
  __hotcell_drop+=(-u "$__hotcell_name")
  for __hotcell_entry in "${__hotcell_old[@]}"; do
    [ "${__hotcell_entry%%=*}" != "$__hotcell_name" ] || __hotcell_keep+=("$__hotcell_entry")
  done
done

__hotcell_frame "$__hotcell_file"
# env takes every word literally, also names that no shell variable can have.
exec env "${__hotcell_drop[@]}" -- "${__hotcell_keep[@]}" "${__hotcell_env[@]}" "$@" "${__hotcell_args[@]}"
