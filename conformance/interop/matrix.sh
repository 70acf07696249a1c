#!/usr/bin/env bash
# The suite against agents and clients on the official SDKs in every kind that README.md beside this lists, and
# against the examples of the Rust SDK as they are published; then a page of all reports (matrix.py).
# Usage: matrix.sh [python|typescript|rust]...   (all without arguments)
# Takes about ten minutes. Needs python3 with venv, npm and cargo. Compiling the Rust SDK takes minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
cache=$target/interop
bin=$target/debug
reports=$cache/reports
mkdir -p "$reports"
. "$here/sdks.sh"

# agent NAME:KIND PROTOCOL COMMAND...
agent() {
    local name=$1 protocol=$2 more=()
    shift 2
    [ "${name#*:}" != login ] || more=(--auth-method word)
    INTEROP=${name#*:} try "agent $name, version $protocol" \
        suite "$name" agent --protocol "$protocol" --profile "$here/profile.toml" "${more[@]}" -- "$@"
}

# client NAME:KIND PROTOCOL COMMAND...
client() {
    local name=$1 protocol=$2
    shift 2
    INTEROP=${name#*:} try "client $name, version $protocol" suite "$name" client --protocol "$protocol" -- "$@"
}

python() {
    install_python
    for kind in full bare login; do agent "python:$kind" 1 "$python" -B "$here/python/agent.py"; done
    for kind in full bare; do
        client "python:$kind" 1 "$python" -B "$here/python/prompt.py" '{prompt}' '{agent}'
    done
}

typescript() {
    install_typescript
    for kind in full bare modes options login busy; do agent "typescript:$kind" 1 node "$typescript/agent.mjs"; done
    for kind in full bare login; do agent "typescript-2:$kind" 2 node "$typescript/agent2.mjs"; done
    for kind in full bare; do client "typescript:$kind" 1 node "$typescript/prompt.mjs" '{prompt}' '{agent}'; done
    client typescript-2:full 2 node "$typescript/prompt2.mjs" '{prompt}' '{agent}'
}

rust() {
    export CARGO_TARGET_DIR=$cache/rust
    cargo build -q --release --manifest-path "$here/rust/Cargo.toml" --bin server
    # The examples as they are published, in a copy of the package.
    local sdk=$cache/rust-sdk built=$cache/rust/release/examples manifest
    manifest=$(cargo metadata --format-version 1 --manifest-path "$here/rust/Cargo.toml" | python3 -c '
import json, sys
print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "agent-client-protocol"))')
    rm -rf "$sdk"
    cp -r "$(dirname "$manifest")" "$sdk"
    # It is not of our workspace, though its folder is.
    printf '\n[workspace]\n' >>"$sdk/Cargo.toml"
    cargo build -q --release --manifest-path "$sdk/Cargo.toml" --features process,stdio,unstable_protocol_v2 \
        --example simple_agent_v2 --example v2_one_shot_client --example yolo_one_shot_client
    for kind in full bare; do agent "rust:$kind" 1 "$cache/rust/release/server" --stdio; done
    try "agent rust-2:example, version 2" suite rust-2:example agent --protocol 2 -- "$built/simple_agent_v2"
    client rust:example 1 "$built/yolo_one_shot_client" --command '{agent-line}' '{prompt}'
    client rust-2:example 2 "$built/v2_one_shot_client" --command '{agent-line}' '{prompt}'
}

[ $# -gt 0 ] || set -- python typescript rust
(cd "$root" && cargo build -q -p acp-conformance-cli)
for language in "$@"; do
    case $language in
        python | typescript | rust) "$language" ;;
        *)
            echo "usage: $0 [python|typescript|rust]..." >&2
            exit 2
            ;;
    esac
done
python3 -B "$here/matrix.py" "$bin/acp-conformance" "$reports" "$cache/matrix"
printf '\nmatrix: %d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
