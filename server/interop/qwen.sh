#!/usr/bin/env bash
# `acp-server serve --url` in front of another project's server, `qwen serve` of qwen-code: prompts, a
# permission by REST, and a restart of either server in between. The model is played by a script that the
# caller starts: at URL it speaks the format of OpenAI's chat completions, answers a prompt with HELLO by
# text, and one with TOOL_WRITE by a call that writes written.txt.
# Needs cargo, curl, jq, node, npm and the network. Usage: server/interop/qwen.sh URL WORKSPACE
set -euo pipefail
model=$1
workspace=$(realpath "$2")
cd "$(dirname "$0")/../.."
cargo build -q -p acp-server-cli
server=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/acp-server
folder=$(mktemp -d)
export XDG_RUNTIME_DIR=$folder/run HOME=$folder/home
export ACP_SERVER_TOKEN=token-of-the-front-server
mkdir -m 700 "$XDG_RUNTIME_DIR"
mkdir -p "$HOME/.qwen"
trap 'kill $(jobs -p) 2>/dev/null || true; wait; rm -rf "$folder"' EXIT
npm install --silent --no-audit --no-fund --prefix "$folder/npm" @qwen-code/qwen-code@0.24.4
echo '{"security":{"auth":{"selectedType":"openai"}},"telemetry":{"enabled":false}}' > "$HOME/.qwen/settings.json"

# Waits until a log has a text.
until_said() {
    for _ in $(seq 600); do
        if grep -q "$2" "$1"; then return; fi
        sleep 0.1
    done
    cat "$1" >&2
    echo "expected: $2" >&2
    exit 1
}

start_qwen() {
    env -u ACP_SERVER_TOKEN OPENAI_API_KEY=none OPENAI_BASE_URL="$model" OPENAI_MODEL=scripted \
        QWEN_SERVER_TOKEN=token-of-the-other-server \
        "$folder/npm/node_modules/.bin/qwen" serve --port "${1:-0}" --workspace "$workspace" \
        > "$folder/qwen.log" 2>&1 &
    qwen=$!
    until_said "$folder/qwen.log" "listening on"
    port=$(sed -n 's/.*listening on http:\/\/127.0.0.1:\([0-9]*\).*/\1/p' "$folder/qwen.log")
}

start_front() {
    ACP_TOKEN=token-of-the-other-server "$server" serve --port 0 --store "$folder/store.db" \
        --url "http://127.0.0.1:$port/acp" > "$folder/front.log" 2>&1 &
    front=$!
    until_said "$folder/front.log" "discovery file"
    url=$(sed -n 's/.*listening on \(http:[^ ]*\)\/acp.*/\1/p' "$folder/front.log")
}

# Kills a server as a failure of the machine does.
end() {
    kill -9 "$1"
    wait "$1" 2> /dev/null || true
}

call() {
    local answer
    if ! answer=$(curl -sS --fail-with-body -H "Authorization: Bearer $ACP_SERVER_TOKEN" \
        -H "Content-Type: application/json" "$@"); then
        echo "$answer" >&2
        return 1
    fi
    printf '%s\n' "$answer"
}

start_qwen
start_front
first=$(call "$url/sessions?wait=60" -d "{\"prompt\": \"HELLO\", \"cwd\": \"$workspace\", \"mode\": \"default\"}")
session=$(jq -r .session_id <<< "$first")
echo "$first" | jq -c '{stop_reason, output}'

call "$url/sessions/$session/turns" -d '{"prompt": "TOOL_WRITE"}' > "$folder/turn"
for _ in $(seq 100); do
    question=$(call "$url/session/$session" | jq -r '.pending_permissions[0] // empty')
    if [ -n "$question" ]; then break; fi
    sleep 0.1
done
if [ -z "$question" ]; then
    call "$url/sessions/$session/transcript?format=md" >&2
    echo "expected a question" >&2
    exit 1
fi
call "$url/tool/approve" -d "{\"session_id\": \"$session\", \"permission_id\": \"$question\", \"approved\": true}"
echo
last=$(jq .last_event_id "$folder/turn")
curl -sSN --max-time 60 -H "Authorization: Bearer $ACP_SERVER_TOKEN" -H "Last-Event-ID: $last" \
    "$url/sessions/$session/events" > "$folder/events"
test -s "$workspace/written.txt"
echo "written.txt: $(cat "$workspace/written.txt")"

end "$front"
start_front
call "$url/sessions/$session/turns?wait=60" -d '{"prompt": "HELLO again"}' | jq -c '{stop_reason, output}'
end "$qwen"
start_qwen "$port"
# The first prompt may fail, because it was on its way to the server that is gone: it is never sent twice.
for _ in 1 2; do
    last=$(call "$url/sessions/$session/turns?wait=60" -d '{"prompt": "HELLO once more"}')
    jq -c '{stop_reason, output, error}' <<< "$last"
    if [ "$(jq -r .stop_reason <<< "$last")" = end_turn ]; then break; fi
done
test "$(jq -r .stop_reason <<< "$last")" = end_turn
# Every prompt is there once, and nothing that a server has repeated.
call "$url/sessions/$session/transcript?format=md" > "$folder/transcript"
test "$(grep -c '^TOOL.*WRITE' "$folder/transcript")" = 1
test "$(grep -c '^HELLO again' "$folder/transcript")" = 1
echo "transcript: $(grep -c '^## User' "$folder/transcript") prompts"
