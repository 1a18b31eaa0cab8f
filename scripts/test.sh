#!/usr/bin/env bash
# npm test: installs what the tests need, runs everything, and tells every failure.
#   npm test -- --tier check --tier cells    runs these tiers: check, cells, engines, faults
#   npm test -- test/contract                runs vitest with these arguments and nothing else
set -euo pipefail
unset CDPATH
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
# shellcheck source=scripts/setup.sh
source scripts/setup.sh
# shellcheck source=scripts/checks.sh
source scripts/checks.sh

# Every runtime that a driver supports, so that the contract is tested with each; a Docker engine, and mmdebstrap, which
# makes its image; openssl for certificates; shellcheck.
TEST_PACKAGES=(
  crun=crun runc=runc runsc=runsc ruby=/usr/bin/ruby python3=/usr/bin/python3 util-linux=unshare procps=ps curl=curl
  docker.io=dockerd podman=podman mmdebstrap=mmdebstrap openssl=openssl e2fsprogs=mkfs.ext4 mount=mount git=git
  python3-pip=/usr/bin/pip3 shellcheck=shellcheck
)

TIERS=(check cells engines faults)

ensure_test_packages() {
  [[ $OSTYPE == linux* ]] || return 0
  find_missing "${TEST_PACKAGES[@]}"
  ((${#MISSING[@]} > 0)) || return 0
  lock_setup "$root"
  install_debian_packages never "${MISSING[@]}" || true
  unlock_setup
  find_missing "${TEST_PACKAGES[@]}"
  ((${#MISSING[@]} > 0)) || return 0
  say "SKIPPED: tests that need ${MISSING[*]}, which could not be installed"
  if [[ ${CI-} == true ]]; then
    say 'on CI a skip is a failure'
    exit 1
  fi
}

ensure_npm_packages "$root" dev
require_node "$root"
ensure_test_packages
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

status=0
for tier in ${tiers[@]+"${tiers[@]}"}; do
  case " ${TIERS[*]} " in
    *" $tier "*) arguments+=(--project "$tier*") ;;
    *)
      say "there is no tier '$tier', only: ${TIERS[*]}"
      exit 2
      ;;
  esac
  if [[ $tier == check ]]; then run_checks || status=1; fi
done
run_vitest "${arguments[@]}" || status=1
exit "$status"
