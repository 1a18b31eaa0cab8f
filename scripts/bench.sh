#!/usr/bin/env bash
# Measures: scripts/bench.sh [ARGUMENT…]
set -euo pipefail
unset CDPATH
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh

ensure_npm_packages "$root" prod
require_node "$root"
ensure_cell_packages "$root" always
export PATH=${NODE%/*}:$PATH UV_THREADPOOL_SIZE=${UV_THREADPOOL_SIZE:-16}
exec "$NODE" --disable-warning=ExperimentalWarning bench/main.ts "$@"
