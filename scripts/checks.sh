# shellcheck shell=bash
# Sourced by test.sh and check.sh, from the root of the repository and with NODE set: the checks without running anything.

step() {
  printf '\n== %s\n' "$1" >&2
  shift
  "$@"
}

check_format() {
  step 'format' "$NODE" node_modules/prettier/bin/prettier.cjs --check --log-level warn .
}

check_lint() {
  step 'lint' "$NODE" node_modules/oxlint/bin/oxlint --type-aware --deny-warnings
}

check_types() {
  step 'types' "$NODE" node_modules/typescript/bin/tsc -b
}

check_docs() {
  step 'generated documents' "$NODE" --disable-warning=ExperimentalWarning scripts/generate-docs.ts --check
}

run_vitest() {
  step 'tests' "$NODE" node_modules/vitest/vitest.mjs run "$@"
}
