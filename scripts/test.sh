#!/usr/bin/env bash
# npm test: installs what the tests need and runs everything, ending at the first failure.
# With arguments only vitest runs, with these: npm test -- test/contract
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

if (($# > 0)); then
  run_vitest "$@"
  exit
fi
check_format
check_lint
check_types
check_shell
check_perl
check_docs
run_vitest
