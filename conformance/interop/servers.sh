#!/usr/bin/env bash
# Tests our client at the URLs of servers of other projects: those of the official Python and TypeScript
# SDKs, over HTTP and over WebSocket, and our agent behind stdio-to-ws. Prompts, permissions, files,
# terminals and cancellation by `acp run` (words.sh).
# Usage: servers.sh [python|typescript|stdio-to-ws]...   (all without arguments; needs python3 with venv, npm)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
cache=$target/interop
bin=$target/debug
passed=0 failed=0 server=
mkdir -p "$cache"

stop() {
    if [ -n "$server" ]; then
        # A server would wait for the streams of clients that have gone.
        kill -KILL "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    server=
}
trap stop EXIT

sum() { cat "$@" | cksum | cut -d ' ' -f 1; }

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
    local venv
    venv=$cache/python-server-$(sum "$here/python/requirements.txt" "$here/python/server-requirements.txt")
    if [ ! -e "$venv/ready" ]; then
        rm -rf "$venv"
        python3 -m venv "$venv"
        "$venv/bin/pip" install -q --disable-pip-version-check -r "$here/python/requirements.txt" \
            -r "$here/python/server-requirements.txt"
        touch "$venv/ready"
    fi
    listen "$venv/bin/python" -B "$here/python/agent.py" --serve
}

start_typescript() {
    local folder
    folder=$cache/typescript-$(sum "$here"/typescript/package*.json)
    if [ ! -e "$folder/ready" ]; then
        rm -rf "$folder"
        mkdir -p "$folder"
        cp "$here"/typescript/package*.json "$folder"
        (cd "$folder" && npm ci --silent --no-audit --no-fund)
        touch "$folder/ready"
    fi
    cp "$here"/typescript/*.mjs "$folder"
    listen node "$folder/agent.mjs" --serve
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

try() {
    local name=$1 begun=$SECONDS
    shift
    printf '\n-- %s\n' "$name"
    if "$@"; then
        passed=$((passed + 1))
        echo "passed: $name ($((SECONDS - begun)) s)"
    else
        echo "FAILED: $name ($((SECONDS - begun)) s)"
        failed=$((failed + 1))
    fi
}

[ $# -gt 0 ] || set -- python typescript stdio-to-ws
cargo build -q --manifest-path "$root/Cargo.toml" -p acp-server -p acp-client --features acp-client/remote
unset ACP_TOKEN
# The reference agent keeps its sessions in the data folder of the user; not those of these tests.
export XDG_DATA_HOME=$cache/data
for name in "$@"; do
    case $name in
        python | typescript)
            "start_$name"
            for at in "$url" "ws${url#http}"; do
                over=${at%%:*}
                try "our client, $name server over $over" "$here/words.sh" "$bin/acp" "$at"
            done
            ;;
        stdio-to-ws)
            start_stdio_to_ws
            try "our client, our agent behind stdio-to-ws" "$here/words.sh" "$bin/acp" "$url"
            ;;
        *)
            echo "usage: $0 [python|typescript|stdio-to-ws]..." >&2
            exit 2
            ;;
    esac
    stop
done
printf '\nservers: %d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
