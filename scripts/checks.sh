# shellcheck shell=bash
# Sourced by test.sh and check.sh, from the root of the repository and with NODE set: the checks without running anything.

CHECKS=(lint types format shell perl)

step() {
  printf '\n== %s\n' "$1" >&2
  shift
  "$@"
}

check_format() {
  step 'format' "$NODE" node_modules/prettier/bin/prettier.cjs --check --log-level warn \
    --cache --cache-strategy content --cache-location node_modules/.cache/hotcell/prettier .
}

check_lint() {
  step 'lint' "$NODE" node_modules/oxlint/bin/oxlint --type-aware --deny-warnings
}

check_types() {
  step 'types' "$NODE" node_modules/typescript/bin/tsc -b
}

# Where the program is missing its check is skipped, but not silently, and not on CI.
has_program() {
  command -v "$1" >/dev/null 2>&1 && return 0
  say "SKIPPED: there is no $1 here"
  [[ ${CI-} != true ]] || exit 1
  return 1
}

# Every shell script has one of these names, or none but is executable.
check_shell() {
  has_program shellcheck || return 0
  step 'shell' find . -type d \( -name node_modules -o -name .git \) -prune -o -type f \
    \( -name '*.sh' -o -name '*.bash' -o ! -name '*.*' -perm -u+x \) -exec shellcheck --external-sources {} +
}

check_perl() {
  has_program perl || return 0
  step 'perl' compile_perl
}

# Warnings are failures, too.
compile_perl() {
  local file words failed=0
  while read -r file; do
    words=$(perl -Iguest/lib -wc "$file" 2>&1) || true
    [[ $words == "$file syntax OK" ]] || {
      printf '%s\n' "$words" >&2
      failed=1
    }
  done < <(find guest test -name '*.p[lm]')
  return "$failed"
}

# Side by side, each with its output in one piece, and all of them, whichever fails.
run_checks() {
  local folder check failed=0
  local pids=()
  folder=$(mktemp -d "${TMPDIR:-/tmp}/hotcell-checks.XXXXXX")
  for check in "${CHECKS[@]}"; do
    "check_$check" >"$folder/$check" 2>&1 &
    pids+=("$!")
  done
  for check in "${CHECKS[@]}"; do
    wait "${pids[0]}" || failed=1
    pids=("${pids[@]:1}")
    cat "$folder/$check" >&2
  done
  rm -r "$folder"
  return "$failed"
}

run_vitest() {
  # Compiled code is kept between the many starts, as the launcher does it.
  export NODE_COMPILE_CACHE=$PWD/node_modules/.cache/hotcell
  step 'tests' "$NODE" node_modules/vitest/vitest.mjs run "$@"
}

# The checks fill what the first tests leave of the processors; what they have to say comes at the end.
run_checks_and_vitest() {
  local told checks failed=0
  told=$(mktemp "${TMPDIR:-/tmp}/hotcell-checks.XXXXXX")
  run_checks 2>"$told" &
  checks=$!
  run_vitest "$@" || failed=1
  wait "$checks" || failed=1
  cat "$told" >&2
  rm "$told"
  return "$failed"
}
