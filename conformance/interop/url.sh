#!/usr/bin/env bash
# Runs the suite against `acp-server serve` over HTTP and over WebSocket: nothing that passes on
# standard input and output may fail there.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin=${CARGO_TARGET_DIR:-$root/target}/debug
folder=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

cargo build -q --manifest-path "$root/Cargo.toml" -p acp-server-cli -p acp-conformance-cli \
    --features acp-conformance-cli/remote
profile=$root/conformance/src/harness/reference.toml
export XDG_RUNTIME_DIR=$folder XDG_DATA_HOME=$folder
ACP_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export ACP_TOKEN ACP_SERVER_TOKEN=$ACP_TOKEN

. "$root/server/interop/serve.sh"
serve "$folder/log" "$bin/acp-server"

# Prints how many requirements passed; fails with the whole report if one does not.
suite() {
    local name=$1 begun=$SECONDS
    shift
    if ! "$bin/acp-conformance" agent --strict --profile "$profile" "$@" >"$folder/report"; then
        cat "$folder/report"
        return 1
    fi
    printf '%s (%s s): ' "$name" "$((SECONDS - begun))"
    tail -n 1 "$folder/report"
}

suite 'standard input and output' -- "$bin/acp-server"
suite HTTP --url "$url"
suite WebSocket --url "ws${url#http}"
