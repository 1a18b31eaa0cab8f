# Reads the job frame for bash.sh and command.sh. Every name starts with __hotcell so that
# it can be removed again and never meets a name of the job.
__hotcell_fail() {
  printf 'hotcell: %s\n' "$1" >&2
  exit 70
}

# Sets __hotcell_size from the next length line, of which $1 has been read already. On a pipe
# `read` takes one byte at a time.
__hotcell_length() {
  IFS= read -r __hotcell_size || __hotcell_fail 'the job frame ends early'
  __hotcell_size=$1$__hotcell_size
  case $__hotcell_size in
    '' | *[!0-9]* | ???????????*) __hotcell_fail 'bad job frame' ;;
  esac
}

# Sets __hotcell_value to the next field.
__hotcell_field() {
  __hotcell_length "$1"
  __hotcell_value=
  [ "$__hotcell_size" -eq 0 ] && return
  IFS= read -r -N "$__hotcell_size" __hotcell_value || __hotcell_fail 'the job frame ends early'
}

__hotcell_count() {
  __hotcell_field
  case $__hotcell_value in
    '' | *[!0-9]* | ???????????*) __hotcell_fail 'bad job frame' ;;
  esac
}

# Extra files may hold NUL bytes, which no shell variable can: head copies them.
__hotcell_extra() {
  local path=$1 folder
  case /$__hotcell_value/ in
    *//* | */../*) __hotcell_fail 'bad path in the job frame' ;;
  esac
  path+=$__hotcell_value
  folder=${path%/*}
  [ -d "$folder" ] || mkdir -p -- "$folder" || __hotcell_fail 'a folder of the job cannot be made'
  __hotcell_length
  head -c "$__hotcell_size" >|"$path" || __hotcell_fail 'a file of the job cannot be written'
  [ "$(wc -c <"$path")" -eq "$__hotcell_size" ] || __hotcell_fail 'the job frame ends early'
}

# Says that the cell is ready, waits, writes the code to $1 and the files beside it, and
# leaves the rest in the arrays __hotcell_args and __hotcell_env.
__hotcell_frame() {
  # In the C locale a character is a byte.
  local LC_ALL=C left base=./
  case $1 in */*) base=${1%/*}/ ;; esac
  __hotcell_args=() __hotcell_env=()
  printf '\006'
  IFS= read -r -N 1 __hotcell_value || exit 0
  __hotcell_field "$__hotcell_value"
  printf %s "$__hotcell_value" >|"$1" || __hotcell_fail 'the code cannot be written'
  __hotcell_count
  for ((left = __hotcell_value; left > 0; left--)); do
    __hotcell_field
    __hotcell_args+=("$__hotcell_value")
  done
  __hotcell_count
  for ((left = __hotcell_value; left > 0; left--)); do
    __hotcell_field
    __hotcell_env+=("$__hotcell_value")
  done
  __hotcell_count
  for ((left = __hotcell_value; left > 0; left--)); do
    __hotcell_field
    __hotcell_extra "$base"
  done
}
