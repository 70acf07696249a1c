#!/usr/bin/env bash
# Tests this project against the official SDKs of other languages; see README.md beside it.
# Usage: run.sh [python|typescript]...   (both without arguments)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
cache=$target/interop
# With ACP_BIN, the commands that are there already.
bin=${ACP_BIN:-$target/debug}
reports=$cache/reports
. "$here/sdks.sh"

# Says which programs are missing, and installs them where that is ours to do.
need() {
    local missing=()
    for language in "$@"; do
        case $language in
            python) python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv) ;;
            typescript)
                command -v node >/dev/null || missing+=(nodejs)
                command -v npm >/dev/null || missing+=(npm)
                ;;
        esac
    done
    [ ${#missing[@]} -eq 0 ] && return
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "missing: ${missing[*]} (names of the Debian packages); install them and run this again" >&2
        exit 1
    fi
    say "installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# check PARTY DIR: judges the recorded messages of one side.
check() { "$bin/acp-conformance" check --strict --side "$1" "$2" | grep -v ': no findings$'; }

[ $# -gt 0 ] || set -- python typescript
for language in "$@"; do
    case $language in
        python | typescript) ;;
        *)
            echo "usage: $0 [python|typescript]..." >&2
            exit 2
            ;;
    esac
done
need "$@"
if [ -z "${ACP_BIN:-}" ]; then
    say "building"
    cargo build -q --manifest-path "$root/Cargo.toml" -p acp-server-cli -p acp-cli -p acp-conformance-cli
fi

# Our agent behind HTTP and WebSocket.
. "$root/server/interop/serve.sh"
mkdir -p "$cache/run"
ACP_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export ACP_TOKEN ACP_SERVER_TOKEN=$ACP_TOKEN XDG_RUNTIME_DIR=$cache/run
trap 'kill "${server:-}" 2>/dev/null || true' EXIT
serve "$cache/serve.log" "$bin/acp-server"

records=$cache/records
# The reference agent keeps its sessions in the data folder of the user; not those of these tests.
export XDG_DATA_HOME=$cache/data
rm -rf "$records"
mkdir -p "$reports"
profile=(--profile "$here/profile.toml" --jobs 2)
for language in "$@"; do
    mkdir -p "$records/$language-client" "$records/$language-agent"
    "install_$language"
    case $language in
        python) client=("$python" -B "$here/python/client.py") agent=("$python" -B "$here/python/agent.py") ;;
        typescript) client=(node "$typescript/client.mjs") agent=(node "$typescript/agent.mjs") ;;
    esac
    try "$language client, our agent" \
        "${client[@]}" "$here/record.sh" "$records/$language-client" "$bin/acp-server"
    try "our agent's messages to the $language client" check agent "$records/$language-client"
    try "our client, $language agent" \
        "$here/words.sh" "$bin/acp" "$here/record.sh" "$records/$language-agent" "${agent[@]}"
    try "our client's messages to the $language agent" check client "$records/$language-agent"
    try "$language client over HTTP, our agent" "${client[@]}" "$url"
    try "$language client over WebSocket, our agent" "${client[@]}" "ws${url#http}"
    try "our suite, $language agent" suite "$language" agent "${profile[@]}" -- "${agent[@]}"
    [ "$language" = typescript ] || continue
    client2=(node "$typescript/client2.mjs") agent2=(node "$typescript/agent2.mjs")
    try "$language client of version 2, our agent" "${client2[@]}" "$bin/acp-server"
    try "$language client and agent of version 2" "${client2[@]}" "${agent2[@]}"
    try "our client, $language agent of version 2" \
        "$bin/acp" run --protocol-version 2 --approve-all --cwd "$cache" permission -- "${agent2[@]}"
    try "our suite, $language agent of version 2" \
        suite "$language-2" agent --protocol 2 "${profile[@]}" -- "${agent2[@]}"
done

printf '\ninterop: %d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
