#!/usr/bin/env bash
# CPU of `acp-server serve` beside the servers of the official Rust and TypeScript SDKs, in one run.
# Needs cargo, npm, python3 with venv, and the network; builds for release, which takes minutes.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-$PWD/target}
cache=$target/interop
mkdir -p "$cache"

cargo build -q --release -p acp-server-cli
CARGO_TARGET_DIR=$cache/rust cargo build -q --release --manifest-path conformance/interop/rust/Cargo.toml --bin server
typescript=$cache/typescript-$(cat conformance/interop/typescript/package*.json | cksum | cut -d ' ' -f 1)
if [ ! -e "$typescript/ready" ]; then
    mkdir -p "$typescript"
    cp conformance/interop/typescript/package*.json "$typescript"
    (cd "$typescript" && npm ci --silent --no-audit --no-fund)
    touch "$typescript/ready"
fi
cp conformance/interop/typescript/*.mjs "$typescript"
if [ ! -e "$cache/throughput/ready" ]; then
    python3 -m venv "$cache/throughput"
    "$cache/throughput/bin/pip" install -q --disable-pip-version-check websockets==17.4 h2==4.4.1
    touch "$cache/throughput/ready"
fi
"$cache/throughput/bin/python" -B server/interop/throughput.py "$target/release/acp-server" \
    "official Rust=$cache/rust/release/server" "official TypeScript=node $typescript/agent.mjs --serve"
