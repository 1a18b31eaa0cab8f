#!/usr/bin/env bash
# npm run check: the tier check, which needs nothing but the npm packages: format, lint, types, shell, Perl and the unit tests.
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

run_checks_and_vitest --project 'check*' "$@"
