#!/usr/bin/env bash
# Makes an npm package of a command that was built for this system.
# Usage: conformance/packages/npm/pack.sh BINARY FOLDER      (needs npm; prints the path of the package)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
binary=$(realpath "$1") folder=$(realpath "$2")
staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT
mkdir "$staged/bin"
install -m 755 "$binary" "$staged/bin/acp-conformance"
cp "$here/../../../LICENSE" "$here/package.json" "$staged"
cd "$staged"
npm pkg set version="$("$binary" --version | cut -d ' ' -f 2)" "os[]=$(node -p process.platform)" "cpu[]=$(node -p process.arch)"
echo "$folder/$(npm pack --silent --pack-destination "$folder")"
