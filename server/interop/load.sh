#!/usr/bin/env bash
# Measures a well-behaved client while others flood, stall and reset; see load.py. Needs cargo, Python 3
# and the network. Usage: server/interop/load.sh [STREAMS]
set -euo pipefail
cd "$(dirname "$0")"
cargo build -q --release -p acp-server-cli
target=$(realpath "${CARGO_TARGET_DIR:-../../target}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install -q --disable-pip-version-check h2==4.4.1 >&2
# A socket for each stream, at both ends.
ulimit -n "$(ulimit -Hn)"
timeout 1200 "$folder/python/bin/python" -B load.py "$target/release/acp-server" "$@"
