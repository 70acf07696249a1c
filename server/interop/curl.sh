#!/usr/bin/env bash
# The REST interface and `/acp` with nothing but curl: what a script or a dashboard does. Usage: curl.sh [BINARY]
set -euo pipefail
binary=${1:-} server=
cd "$(dirname "$0")/../.."
if [ -z "$binary" ]; then
    cargo build -q -p acp-server-cli
    binary=${CARGO_TARGET_DIR:-target}/debug/acp-server
fi
folder=$(mktemp -d)
trap 'kill "$server" 2>/dev/null; wait; rm -rf "$folder"' EXIT
. server/interop/serve.sh
XDG_RUNTIME_DIR=$folder serve "$folder/said" "$binary"
url=${url%/acp}
token=$(cat "$folder"/acp-server/*.token)
auth="Authorization: Bearer $token"
json='Content-Type: application/json'
check() { # NAME EXPECTED ACTUAL
    case $3 in *"$2"*) echo "ok  $1" ;; *) echo "not ok  $1: $3" >&2; exit 1 ;; esac
}
member() { sed -n "s/.*\"$1\": *\"\([^\"]*\)\".*/\1/p"; }

check "no token" unauthorized "$(curl -s "$url/sessions" | sed 's/.*"error":"\([a-z]*\)".*/\1/')"
session=$(curl -s -H "$auth" -H "$json" -d '{}' "$url/session" | member session_id)
check "a session" sess_ "$session"
curl -s -H "$auth" -H "$json" -d '{"text":"hello from curl"}' "$url/session/$session/message" >"$folder/message"
check "a message" message_id "$(cat "$folder/message")"
# The document's route ends its stream with the turn.
check "its events" "event: end" "$(curl -sN --max-time 20 -H "$auth" "$url/sessions/$session/events")"
check "the transcript" "hello from curl" "$(curl -s -H "$auth" "$url/sessions/$session/transcript?format=md")"
check "costs" '"total_runs"' "$(curl -s -H "$auth" "$url/runs/cost?since=7d")"
check "the OpenAPI document" '"openapi"' "$(curl -s -H "$auth" "$url/openapi.json")"

hello='{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}'
curl -s -D "$folder/head" -H "$auth" -H "$json" -d "$hello" "$url/acp" >"$folder/answer"
connection=$(tr -d '\r' <"$folder/head" | sed -n 's/^acp-connection-id: //Ip')
check "initialize at /acp" '"protocolVersion":1' "$(cat "$folder/answer")"
load='{"jsonrpc":"2.0","id":1,"method":"_acp-sdk/session/resume","params":{"sessionId":"'$session'","sinceEventId":0}}'
curl -s -o /dev/null -H "$auth" -H "$json" -H "Acp-Connection-Id: $connection" -H "Acp-Session-Id: $session" \
    -d "$load" "$url/acp"
stream=$(curl -sN --max-time 2 -H "$auth" -H "Acp-Connection-Id: $connection" -H "Acp-Session-Id: $session" \
    "$url/acp" || true)
check "the same session at /acp, by its cursor" "hello from curl" "$stream"
