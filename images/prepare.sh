#!/bin/sh
# Runs while an image is built: prepare.sh PROGRAMS, which are words in one argument: the interpreter mostly.
# Sees that the programs are there that a cell needs, and makes the user of the cells. Needs no network where nothing
# is missing.
set -eu

# perl runs the agent in the cell; the agent and the guest scripts start the others.
needed="perl bash setsid env head $1"

fail() {
  echo "prepare.sh: $1" >&2
  exit 1
}

list_missing() {
  for program in $needed; do
    command -v "$program" >/dev/null 2>&1 || echo "$program"
  done | sort -u
}

debian_package() {
  case $1 in
    perl) echo perl-base ;;
    setsid) echo util-linux ;;
    env | head) echo coreutils ;;
    node) echo nodejs ;;
    pip3) echo python3-pip ;;
    update-ca-certificates) echo ca-certificates ;;
    bun) ;;
    *) echo "$1" ;;
  esac
}

alpine_package() {
  case $1 in
    setsid) echo util-linux-misc ;;
    env | head) echo coreutils ;;
    node) echo nodejs ;;
    pip3) echo py3-pip ;;
    update-ca-certificates) echo ca-certificates ;;
    bun) ;;
    *) echo "$1" ;;
  esac
}

# Sets $manager and $packages: the message of a failure needs them.
install_packages() {
  if command -v apt-get >/dev/null 2>&1; then
    packages=$(for program; do debian_package "$program"; done)
    manager=apt-get
    [ -n "$packages" ] || return 0
    # shellcheck disable=SC2086 # a list of words
    apt-get update >&2 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages >&2
  elif command -v apk >/dev/null 2>&1; then
    packages=$(for program; do alpine_package "$program"; done)
    manager=apk
    [ -n "$packages" ] || return 0
    # shellcheck disable=SC2086
    apk add --no-cache $packages >&2
  fi
}

manager=
packages=
missing=$(list_missing)
if [ -n "$missing" ]; then
  # shellcheck disable=SC2086
  install_packages $missing || true
  missing=$(list_missing | tr '\n' ' ')
  missing=${missing% }
  if [ -n "$missing" ]; then
    if [ -z "$manager" ]; then
      fail "this base lacks $missing, and has neither apt-get nor apk to install it"
    elif [ -z "$packages" ]; then
      fail "this base lacks $missing, and no package of $manager brings it"
    else
      fail "this base lacks $missing, and $manager could not install it; has the build no network?"
    fi
  fi
fi
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb

# Whoever has the number or the name already gives way: the node and bun images have a user 1000 of their own. Edits the
# files because not every base has useradd.
for file in /etc/passwd /etc/group; do
  [ -e "$file" ] || fail "this base has no $file"
  sed -i -e '/^runner:/d' -e '/^[^:]*:[^:]*:1000:/d' "$file"
done
echo 'runner:*:1000:1000:user of the cells:/tmp:/bin/bash' >>/etc/passwd
echo 'runner:*:1000:' >>/etc/group

rm -f "$0"
