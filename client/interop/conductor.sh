#!/usr/bin/env bash
# Chains of our proxies and those of the official Rust SDK, under both conductors. Needs cargo and the network; compiles the
# official SDK once.
# Usage: conductor.sh [FOLDER]      FOLDER has `acp`, `acp-conformance` and `examples/editor_tools` (default: it builds them)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
[ $# -gt 0 ] || (cd "$root" && cargo build -q -p acp-cli -p acp-conformance-cli -p acp-proxy --bins --example editor_tools)
echo "compiling the official SDK" >&2
CARGO_TARGET_DIR=$target/interop/official cargo build -q --locked --manifest-path "$here/official/Cargo.toml"
timeout 120 python3 -B "$here/conductor.py" "${1:-$target/debug}" "$target/interop/official/debug/acp-interop-official"
