#!/usr/bin/env bash
# npm run check: types, lint, format, shell, Perl and the unit tests; needs nothing but the npm packages.
set -euo pipefail
unset CDPATH
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh
# shellcheck source=scripts/checks.sh
source scripts/checks.sh

ensure_npm_packages "$root" dev
require_node "$root"
export PATH=${NODE%/*}:$PATH

check_types
check_lint
check_format
check_shell
check_perl
check_docs
run_vitest src "$@"
