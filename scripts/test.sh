#!/usr/bin/env bash
# npm test: installs what the tests need, runs everything, and tells every failure.
#   npm test -- --tier check --tier cells    runs these tiers: check, cells, engines, agents, faults
#   npm test -- test/contract                runs vitest with these arguments and nothing else
#   npm test -- --repeat 10 --under-load FILE…  the same ten times, beside busy loops, until it fails
set -euo pipefail
unset CDPATH
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh
# shellcheck source=scripts/checks.sh
source scripts/checks.sh
# shellcheck source=scripts/repeat.sh
source scripts/repeat.sh

TIERS=(check cells engines agents faults)

ensure_npm_packages "$root" dev
require_node "$root"
ensure_test_packages "$root"
export PATH=${NODE%/*}:$PATH

tiers=()
arguments=()
repeat=
load=no
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
    --repeat)
      repeat=${2-}
      [[ $repeat =~ ^[1-9][0-9]{0,3}$ ]] || {
        say "--repeat takes a number of runs, not '$repeat'"
        exit 2
      }
      shift 2
      ;;
    --under-load)
      load=yes
      shift
      ;;
    *)
      arguments+=("$1")
      shift
      ;;
  esac
done
if [[ $load == yes || -n $repeat ]]; then
  ((${#arguments[@]} > 0)) || {
    say '--repeat and --under-load want files'
    exit 2
  }
  repeat_vitest "${repeat:-1}" "$load" "${arguments[@]}"
  exit
fi
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
