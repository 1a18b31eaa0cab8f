#!/usr/bin/env bash
# npm test: installs what the tests need, runs everything, and tells every failure.
#   npm test -- --tier check --tier cells    runs these tiers: check, cells, engines, agents, faults
#   npm test -- test/contract                runs vitest with these arguments and nothing else
set -euo pipefail
unset CDPATH
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh
# shellcheck source=scripts/checks.sh
source scripts/checks.sh

TIERS=(check cells engines agents faults)

ensure_npm_packages "$root" dev
require_node "$root"
ensure_test_packages "$root"
export PATH=${NODE%/*}:$PATH

tiers=()
arguments=()
while (($# > 0)); do
  case $1 in
    --tier)
      tiers+=("${2-}")
      shift $(($# > 1 ? 2 : 1))
      ;;
    --tier=*)
      tiers+=("${1#--tier=}")
      shift
      ;;
    *)
      arguments+=("$1")
      shift
      ;;
  esac
done
((${#tiers[@]} + ${#arguments[@]} > 0)) || tiers=("${TIERS[@]}")

run=run_vitest
for tier in ${tiers[@]+"${tiers[@]}"}; do
  case " ${TIERS[*]} " in
    *" $tier "*) arguments+=(--project "$tier*") ;;
    *)
      say "there is no tier '$tier', only: ${TIERS[*]}"
      exit 2
      ;;
  esac
  [[ $tier != check ]] || run=run_checks_and_vitest
done
"$run" "${arguments[@]}"
