#!/usr/bin/env bash
# Tests our client at the URLs of servers of other projects: those of the official Python, TypeScript and Rust
# SDKs, over HTTP and over WebSocket, and our agent behind stdio-to-ws. Prompts, permissions, files,
# terminals and cancellation by `acp run` (words.sh); the suite, whose findings must be in known.txt; and how
# their servers answer what the proposal leaves open (statuses.py), which must be as in statuses.txt.
# Usage: servers.sh [python|typescript|rust|stdio-to-ws]...
# All without arguments; needs python3 with venv, npm and cargo. Compiling the Rust SDK takes minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
cache=$target/interop
bin=$target/debug
reports=$cache/reports
server=
mkdir -p "$reports"
. "$here/sdks.sh"

stop() {
    if [ -n "$server" ]; then
        # A server would wait for the streams of clients that have gone.
        kill -KILL "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    server=
}
trap stop EXIT

# listen COMMAND...: starts a server and waits for its URL, which it prints first.
listen() {
    : >"$cache/url"
    "$@" >"$cache/url" 2>"$cache/server.log" &
    server=$!
    for _ in $(seq 300); do
        url=$(sed -n '/^http/p;/^ws/p' "$cache/url" | head -n 1)
        [ -z "$url" ] || return 0
        if ! kill -0 "$server" 2>/dev/null; then break; fi
        sleep 0.1
    done
    cat "$cache/server.log" >&2
    return 1
}

start_python() {
    install_python "$here/python/server-requirements.txt"
    listen "$python" -B "$here/python/agent.py" --serve
}

start_typescript() {
    install_typescript
    listen node "$typescript/agent.mjs" --serve
}

start_rust() {
    CARGO_TARGET_DIR=$cache/rust cargo build -q --release --manifest-path "$here/rust/Cargo.toml" --bin server
    listen "$cache/rust/release/server"
}

# It prints no URL and takes a port, so one that is free a moment before is used.
start_stdio_to_ws() {
    local folder=$cache/stdio-to-ws-0.2.0 port
    if [ ! -e "$folder/ready" ]; then
        rm -rf "$folder"
        mkdir -p "$folder"
        (cd "$folder" && npm install --silent --no-audit --no-fund --prefix . stdio-to-ws@0.2.0)
        touch "$folder/ready"
    fi
    port=$(node -e 's=require("net").createServer().listen(0,()=>{console.log(s.address().port);s.close()})')
    (cd "$folder" && exec node node_modules/stdio-to-ws/dist/main.js --port "$port" "$bin/acp-server") \
        >"$cache/server.log" 2>&1 &
    server=$!
    url=ws://127.0.0.1:$port/
    for _ in $(seq 100); do
        if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then return 0; fi
        sleep 0.1
    done
    cat "$cache/server.log" >&2
    return 1
}

# statuses NAME URL: compares the answers to single requests with those that are known for NAME.
statuses() {
    python3 -B "$here/statuses.py" "$2" | sed "s/^/$1 /" >"$cache/$1-statuses.txt"
    grep "^$1 " "$here/statuses.txt" | diff - "$cache/$1-statuses.txt"
}

[ $# -gt 0 ] || set -- python typescript rust stdio-to-ws
cargo build -q --manifest-path "$root/Cargo.toml" -p acp-server-cli -p acp-cli -p acp-conformance-cli \
    --features acp-conformance-cli/remote
unset ACP_TOKEN
# The reference agent keeps its sessions in the data folder of the user; not those of these tests.
export XDG_DATA_HOME=$cache/data
for name in "$@"; do
    case $name in
        python | typescript | rust)
            "start_$name"
            try "the answers of the $name server" statuses "$name" "$url"
            for at in "$url" "ws${url#http}"; do
                over=${at%%:*}
                try "our client, $name server over $over" "$here/words.sh" "$bin/acp" "$at"
                try "our suite, $name server over $over" \
                    suite "$name-$over" agent --profile "$here/profile.toml" --jobs 2 --url "$at"
            done
            ;;
        stdio-to-ws)
            start_stdio_to_ws
            try "our client, our agent behind stdio-to-ws" "$here/words.sh" "$bin/acp" "$url"
            # Not the area of the transport: the process of stdio-to-ws ends at a frame without a mask.
            try "our suite, our agent behind stdio-to-ws" \
                suite stdio-to-ws agent --profile "$root/conformance/src/harness/reference.toml" --jobs 2 --url "$url" --skip remote
            ;;
        *)
            echo "usage: $0 [python|typescript|rust|stdio-to-ws]..." >&2
            exit 2
            ;;
    esac
    stop
done
printf '\nservers: %d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
