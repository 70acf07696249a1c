#!/usr/bin/env bash
# The official Rust client against `acp-server serve`, over HTTP and WebSocket. Needs cargo and the network;
# compiles the official SDK, which takes a minute or more, so CI leaves it out.
set -euo pipefail
cd "$(dirname "$0")"
root=$(realpath ../../..)
target=${CARGO_TARGET_DIR:-$root/target}
export TOKEN=a-token-for-interop
(cd "$root" && cargo build -q -p acp-server-cli)
CARGO_TARGET_DIR=$target/interop/rust cargo build -q --bin client

folder=$(mktemp -d)
trap 'kill "${server:-}" 2>/dev/null; wait; rm -rf "$folder"' EXIT
. "$root/server/interop/serve.sh"
XDG_RUNTIME_DIR=$folder ACP_SERVER_TOKEN=$TOKEN serve "$folder/said" "$target/debug/acp-server"
for scheme in http ws; do
    echo "-- the Rust SDK's client over $scheme"
    timeout 120 "$target/interop/rust/debug/client" "$scheme${url#http}"
done
