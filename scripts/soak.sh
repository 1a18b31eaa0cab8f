#!/usr/bin/env bash
# npm run soak: chaos with a ledger; `-- --help` says more.
set -euo pipefail
unset CDPATH
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh

ensure_npm_packages "$root" dev
require_node "$root"
ensure_test_packages "$root"
export PATH=${NODE%/*}:$PATH UV_THREADPOOL_SIZE=${UV_THREADPOOL_SIZE:-16}
# Compiled code is kept between the many starts, as the launcher does it.
export NODE_COMPILE_CACHE=$PWD/node_modules/.cache/hotcell
exec "$NODE" --disable-warning=ExperimentalWarning test/soak/main.ts "$@"
