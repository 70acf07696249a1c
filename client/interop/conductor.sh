#!/usr/bin/env bash
# Chains of our proxies and those of the official Rust SDK, under both conductors. Needs cargo and the network; compiles the
# official SDK once. Then the suite through three proxies, which must say what it says without them.
# Usage: conductor.sh [FOLDER]      FOLDER has `acp`, `acp-conformance` and the examples of acp-proxy (default: it builds them)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
[ $# -gt 0 ] || (cd "$root" && cargo build -q -p acp-cli -p acp-conformance-cli -p acp-proxy --features acp-proxy/mcp --bins --examples)
echo "compiling the official SDK" >&2
CARGO_TARGET_DIR=$target/interop/official cargo build -q --locked --manifest-path "$here/official/Cargo.toml"
bin=$(realpath "${1:-$target/debug}")
timeout 120 python3 -B "$here/conductor.py" "$bin" "$target/interop/official/debug/acp-interop-official"

# said VERSION PROXY...: what the suite says of the reference agent behind these.
said() {
    local version=$1
    shift
    "$bin/acp-conformance" agent --protocol "$version" --quick -- "$@" "$bin/acp-conformance" reference-agent |
        grep '^conformant: '
}
pass=$bin/examples/pass
for version in 1 2; do
    direct=$(said "$version")
    through=$(said "$version" "$pass" "$pass" "$pass")
    diff <(echo "$direct") <(echo "$through") >&2
    echo "ok: the suite through three proxies, version $version"
done
