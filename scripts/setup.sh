# shellcheck shell=bash
# Sourced by the launcher and the other scripts: the one place that installs what is missing.
# Runs under the bash 3.2 of macOS too. When nothing is missing it is silent and starts one process, cmp.

say() {
  printf 'hotcell: %s\n' "$*" >&2
}

hint() {
  printf '  → %s\n' "$*" >&2
}

# Sets NODE to a Node of version 24 or newer; fails when there is none.
find_node() {
  local root=$1 version
  NODE=$root/node_modules/node/bin/node
  [[ -x $NODE ]] && return 0
  NODE=$(command -v node) || return 1
  version=$("$NODE" --version) || return 1
  version=${version#v}
  ((${version%%.*} >= 24))
}

require_node() {
  find_node "$1" && return 0
  say 'Node.js 24 or newer is missing, and npm could not install one'
  hint 'Install it from https://nodejs.org and run this again.'
  exit 125
}

# The stamp is written last: its first line is `dev` or `prod`, padded to five bytes with the line end,
# and the rest is the package-lock.json that was installed.
npm_packages_ready() {
  local root=$1 wanted=$2 stamp=$1/node_modules/.hotcell-installed mode
  [[ -f $stamp ]] || return 1
  read -r mode <"$stamp" || return 1
  [[ $mode == dev || $mode == "$wanted" ]] || return 1
  cmp -s "$stamp" "$root/package-lock.json" 5 0
}

write_stamp() {
  local root=$1 mode=$2 stamp=$1/node_modules/.hotcell-installed
  {
    printf '%-4s\n' "$mode"
    cat "$root/package-lock.json"
  } >"$stamp.$$"
  mv -f "$stamp.$$" "$stamp"
}

has_dev_packages() {
  [[ -d $1/node_modules/typescript && -d $1/node_modules/vitest ]]
}

# npm writes its own record last, so a record newer than the lock file is a whole installation made by hand.
adopt_npm_packages() {
  local root=$1 wanted=$2 record=$1/node_modules/.package-lock.json
  [[ -x $root/node_modules/node/bin/node && $record -nt $root/package-lock.json ]] || return 1
  if has_dev_packages "$root"; then
    write_stamp "$root" dev
  else
    [[ $wanted == prod ]] && write_stamp "$root" prod
  fi
}

# ensure_npm_packages ROOT prod|dev
ensure_npm_packages() {
  local root=$1 wanted=$2
  npm_packages_ready "$root" "$wanted" && return 0
  lock_setup "$root"
  if ! npm_packages_ready "$root" "$wanted" && ! adopt_npm_packages "$root" "$wanted"; then
    install_npm_packages "$root" "$wanted"
  fi
  unlock_setup
}

install_npm_packages() {
  local root=$1 mode=$2 log stamp=$1/node_modules/.hotcell-installed
  local flags=(--no-audit --no-fund --loglevel=error)
  if ! command -v npm >/dev/null 2>&1; then
    say 'npm is missing; it is needed once, to install the packages of Hotcell'
    hint 'Install Node.js 24 from https://nodejs.org, or on Debian and Ubuntu: sudo apt-get install npm'
    exit 125
  fi
  # Whoever has the development packages keeps them.
  if has_dev_packages "$root" || grep -qs '^dev' "$stamp"; then mode=dev; fi
  if [[ $mode == dev ]]; then flags+=(--include=dev); else flags+=(--omit=dev); fi
  say "installing npm packages into $root/node_modules (npm ci ${flags[3]})"
  # Without these a run that dies half-way cannot be taken for a whole one.
  rm -f "$stamp" "$root/node_modules/.package-lock.json"
  # npm holds the lock too (file 9), so that it keeps others away even if this script is killed.
  log=$(mktemp "${TMPDIR:-/tmp}/hotcell-npm.XXXXXX")
  if ! (cd "$root" && npm ci "${flags[@]}" </dev/null >"$log" 2>&1); then
    cat "$log" >&2
    say "npm ci failed in $root; its output is above and in $log"
    exit 125
  fi
  rm -f "$log"
  write_stamp "$root" "$mode"
  say 'npm packages are installed'
}

# One set-up at a time. The lock is on this very file, so that there is nothing to leave behind.
lock_setup() {
  exec 9<"$1/scripts/setup.sh"
  if command -v flock >/dev/null 2>&1; then
    flock -n 9 && return 0
    say 'another set-up is running; waiting for it'
    flock 9 || true
  elif command -v perl >/dev/null 2>&1; then
    perl -e 'open(my $file, "<&=", 9) and flock($file, 2)' || true
  fi
}

unlock_setup() {
  exec 9<&-
}

# is_installed PROGRAM: a name is looked for where packages put programs, a path is taken as it is.
is_installed() {
  local folder
  [[ $1 == /* ]] && { [[ -x $1 ]]; return; }
  for folder in /usr/bin /usr/sbin /bin /sbin /usr/local/bin /usr/local/sbin; do
    [[ -x $folder/$1 ]] && return 0
  done
  return 1
}

# find_missing PACKAGE=PROGRAM…: sets MISSING to the packages whose program is not there.
find_missing() {
  local pair
  MISSING=()
  for pair in "$@"; do
    is_installed "${pair#*=}" || MISSING+=("${pair%%=*}")
  done
}

# What cells need on Linux: one runtime, interpreters under /usr, which is what cells see, and for root what makes the file
# systems of sessions.
find_missing_for_cells() {
  local wanted=(python3=/usr/bin/python3 ruby=/usr/bin/ruby)
  if ((EUID == 0)); then wanted+=(e2fsprogs=mkfs.ext4 mount=mount); fi
  if ! is_installed crun && ! is_installed runc && ! is_installed runsc; then wanted+=(crun=crun); fi
  find_missing "${wanted[@]}"
}

# wants_host_programs ROOT WORD…: may these words of a command make cells from programs of this machine? Drivers and settings
# are the business of the product, so it answers.
wants_host_programs() {
  local root=$1
  shift
  "$NODE" --disable-warning=ExperimentalWarning "$root/src/cli/wants-host-programs.ts" "$@" </dev/null
}

# ensure_cell_packages ROOT always|once WORD…: installs what the cells of this command need, or says how to. Needs NODE. Never
# fatal: the engine says precisely what is missing. `once` does not ask or say the same thing a second time.
ensure_cell_packages() {
  local root=$1 when=$2 asked=$1/node_modules/.hotcell-packages-asked before=
  shift 2
  [[ $OSTYPE == linux* ]] || return 0
  find_missing_for_cells
  ((${#MISSING[@]} > 0)) || return 0
  if [[ -f $asked ]]; then read -r before <"$asked" || true; fi
  [[ $when == once && $before == "${MISSING[*]}" ]] && return 0
  wants_host_programs "$root" "$@" || return 0
  lock_setup "$root"
  find_missing_for_cells
  if ((${#MISSING[@]} > 0)) && ! install_debian_packages ask "${MISSING[@]}"; then
    [[ -w $root/node_modules ]] && printf '%s\n' "${MISSING[*]}" >"$asked"
  fi
  unlock_setup
}

# install_debian_packages ask|never PACKAGE…: `ask` lets sudo ask for a password on a terminal.
# Fails, with the command to run by hand, when it cannot install all of them.
install_debian_packages() {
  local ask=$1 log package
  local as_root=() failed=()
  shift
  if ! command -v apt-get >/dev/null 2>&1; then
    say "missing: $*"
    hint 'Install them with the package manager of this system.'
    return 1
  fi
  if ((EUID != 0)); then
    if sudo -n true >/dev/null 2>&1; then
      as_root=(sudo -n)
    elif [[ $ask == ask && -t 2 ]] && command -v sudo >/dev/null 2>&1; then
      as_root=(sudo)
    else
      say "missing: $*"
      hint "sudo apt-get install --no-install-recommends $*"
      return 1
    fi
  fi
  say "installing Debian packages: $*"
  log=$(mktemp "${TMPDIR:-/tmp}/hotcell-apt.XXXXXX")
  forbid_services
  if ! apt_install "$@"; then
    say 'not found or not fetched; reading the package lists anew'
    run_apt update || true
    # One by one, so that one unknown package does not keep the others away.
    for package in "$@"; do apt_install "$package" || failed+=("$package"); done
  fi
  allow_services
  if ((${#failed[@]} > 0)); then
    tail -n 30 "$log" >&2
    say "could not install: ${failed[*]} (output above and in $log)"
    hint "sudo apt-get install --no-install-recommends ${failed[*]}"
    return 1
  fi
  rm -f "$log"
  say 'Debian packages are installed'
}

# Docker's package starts an engine as soon as it is installed, which nobody asked for, and fails where that fails. dpkg
# asks this file before it starts a service. Whoever has one decides; ours says no only as long as this script lives, so
# that one left behind does no harm. Both use `as_root` and `log` of install_debian_packages, as do the two after them.
SERVICE_POLICY=/usr/sbin/policy-rc.d

forbid_services() {
  if [[ -e $SERVICE_POLICY ]] && ! is_our_policy; then return 0; fi
  printf '#!/bin/sh\n# made by hotcell\n[ ! -d /proc/%s ] || exit 101\n' "$$" |
    "${as_root[@]}" install -m 755 /dev/stdin "$SERVICE_POLICY" >>"$log" 2>&1 || true
}

allow_services() {
  if is_our_policy; then "${as_root[@]}" rm -f "$SERVICE_POLICY" || true; fi
}

is_our_policy() {
  grep -qs '^# made by hotcell$' "$SERVICE_POLICY"
}

run_apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=120 "$@" \
    </dev/null >>"$log" 2>&1 9<&-
}

apt_install() {
  run_apt install --no-install-recommends "$@"
}

# Every runtime that a driver supports, so that the contract is tested with each; a Docker engine, and mmdebstrap, which
# makes its image; openssl for certificates; shellcheck.
TEST_PACKAGES=(
  crun=crun runc=runc runsc=runsc ruby=/usr/bin/ruby python3=/usr/bin/python3 util-linux=unshare procps=ps curl=curl
  docker.io=dockerd podman=podman mmdebstrap=mmdebstrap openssl=openssl e2fsprogs=mkfs.ext4 mount=mount git=git
  python3-pip=/usr/bin/pip3 shellcheck=shellcheck
)

# ensure_test_packages ROOT: installs what the tests need, or says what will be skipped.
ensure_test_packages() {
  local root=$1
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
