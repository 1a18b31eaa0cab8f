#!/usr/bin/env bash
# Runs the Node that Hotcell is made for, with the development packages: scripts/node.sh FILE [ARGUMENT…]
set -euo pipefail
unset CDPATH
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=scripts/setup.sh
source "$root/scripts/setup.sh"

ensure_npm_packages "$root" dev
require_node "$root"
export PATH=${NODE%/*}:$PATH
exec "$NODE" --disable-warning=ExperimentalWarning "$@"
