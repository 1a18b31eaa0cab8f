#!/usr/bin/env bash
# Measures: scripts/bench.sh [sessions|mcp|fleet] [ARGUMENT…]
set -euo pipefail
unset CDPATH
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh

# The client that `mcp` measures with is only for tests.
kind=prod
[[ ${1-} != mcp ]] || kind=dev
ensure_npm_packages "$root" "$kind"
require_node "$root"
ensure_cell_packages "$root" always
export PATH=${NODE%/*}:$PATH UV_THREADPOOL_SIZE=${UV_THREADPOOL_SIZE:-16}
script=bench/main.ts
if [[ ${1-} == sessions ]]; then
  script=bench/sessions/main.ts
  shift
  # What a sync is compared with.
  command -v rsync >/dev/null 2>&1 || install_debian_packages ask rsync
elif [[ ${1-} == mcp || ${1-} == fleet ]]; then
  script=bench/$1/main.ts
  shift
fi
exec "$NODE" --disable-warning=ExperimentalWarning "$script" "$@"
