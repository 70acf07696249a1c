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
passed=0 failed=0

say() { printf '\n-- %s\n' "$*"; }

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

# Each SDK is installed once for a list of pinned versions; the folder is named after the list.
sum() { cat "$@" | cksum | cut -d ' ' -f 1; }

install_python() {
    local venv
    venv=$cache/python-$(sum "$here/python/requirements.txt")
    if [ ! -e "$venv/ready" ]; then
        say "installing the Python SDK"
        rm -rf "$venv"
        python3 -m venv "$venv"
        "$venv/bin/pip" install -q --disable-pip-version-check -r "$here/python/requirements.txt"
        touch "$venv/ready"
    fi
    client=("$venv/bin/python" -B "$here/python/client.py")
    agent=("$venv/bin/python" -B "$here/python/agent.py")
}

# Modules are looked up beside the script, so the scripts are copied to where the SDK is.
install_typescript() {
    local folder
    folder=$cache/typescript-$(sum "$here"/typescript/package*.json)
    if [ ! -e "$folder/ready" ]; then
        say "installing the TypeScript SDK"
        rm -rf "$folder"
        mkdir -p "$folder"
        cp "$here"/typescript/package*.json "$folder"
        (cd "$folder" && npm ci --silent --no-audit --no-fund)
        touch "$folder/ready"
    fi
    cp "$here"/typescript/*.mjs "$folder"
    client=(node "$folder/client.mjs")
    agent=(node "$folder/agent.mjs")
    client2=(node "$folder/client2.mjs")
    agent2=(node "$folder/agent2.mjs")
}

# suite NAME VERSION AGENT...: runs the suite against an agent; what it finds must be what is known.
suite() {
    local name=$1 version=$2 report=$cache/$1-suite.txt code=0
    shift 2
    "$bin/acp-conformance" agent --protocol "$version" --profile "$here/profile.toml" --jobs 2 -- "$@" >"$report" || code=$?
    [ "$code" -le 1 ] || [ "$code" -eq 3 ] || return "$code"
    sed -n "s/^$name \([^ :]*\): .*/\1/p" "$here/known.txt" | sort >"$cache/known"
    sed -n 's/^FAIL \([^ ]*\) (\(must\|capability\|derived\|should\)): .*/\1/p' "$report" | sort >"$cache/found"
    comm -23 "$cache/known" "$cache/found" | sed 's/^/FAIL not found any more, take it out of known.txt: /'
    comm -13 "$cache/known" "$cache/found" | while read -r id; do
        sed -n "/^FAIL $id /,/^$/p" "$report"
    done
    tail -n 1 "$report"
    cmp -s "$cache/known" "$cache/found"
}

# check PARTY DIR: judges the recorded messages of one side.
check() { "$bin/acp-conformance" check --strict --side "$1" "$2" | grep -v ': no findings$'; }

# Runs a command, shows what it says, and counts whether it succeeded.
try() {
    local name=$1 begun=$SECONDS
    shift
    say "$name"
    if "$@"; then
        passed=$((passed + 1))
        echo "passed: $name ($((SECONDS - begun)) s)"
    else
        echo "FAILED: $name (exit code $?; $((SECONDS - begun)) s)"
        failed=$((failed + 1))
    fi
}

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
    cargo build -q --manifest-path "$root/Cargo.toml" -p acp-server-cli -p acp-cli -p acp-conformance
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
for language in "$@"; do
    mkdir -p "$records/$language-client" "$records/$language-agent"
    "install_$language"
    try "$language client, our agent" \
        "${client[@]}" "$here/record.sh" "$records/$language-client" "$bin/acp-server"
    try "our agent's messages to the $language client" check agent "$records/$language-client"
    try "our client, $language agent" \
        "$here/words.sh" "$bin/acp" "$here/record.sh" "$records/$language-agent" "${agent[@]}"
    try "our client's messages to the $language agent" check client "$records/$language-agent"
    try "$language client over HTTP, our agent" "${client[@]}" "$url"
    try "$language client over WebSocket, our agent" "${client[@]}" "ws${url#http}"
    try "our suite, $language agent" suite "$language" 1 "${agent[@]}"
    [ "$language" = typescript ] || continue
    try "$language client of version 2, our agent" "${client2[@]}" "$bin/acp-server"
    try "$language client and agent of version 2" "${client2[@]}" "${agent2[@]}"
    try "our client, $language agent of version 2" \
        "$bin/acp" run --protocol-version 2 --approve-all --cwd "$cache" permission -- "${agent2[@]}"
    try "our suite, $language agent of version 2" suite "$language-2" 2 "${agent2[@]}"
done

printf '\ninterop: %d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
