#!/usr/bin/env bash
# Puts together what a bundle holds but the npm packages: stage.sh FOLDER, which must not exist or be empty.
# How to go on is in docs/mcp.md.
set -euo pipefail
unset CDPATH
root=$(cd -P "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=${1:?usage: stage.sh FOLDER}

mkdir -p "$folder"
[[ -z $(ls -A "$folder") ]] || {
  printf 'stage.sh: %s is not empty\n' "$folder" >&2
  exit 2
}
cp "$root/packaging/mcpb/manifest.json" "$root/package.json" "$root/package-lock.json" "$root/LICENSE" "$folder"
cp -R "$root/src" "$root/guest" "$root/images" "$folder"
# What only tests need; mcpb leaves out package-lock.json and tsconfig.json by itself.
find "$folder" \( -name '*.test.ts' -o -name '*.double.ts' \) -delete
rm -rf "$folder/guest/exactness"
