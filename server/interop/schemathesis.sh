#!/usr/bin/env bash
# Fuzzes the REST interface of `acp-server serve` by its OpenAPI document, with schemathesis.
# Streams of events are left out: they do not end, and have tests of their own.
#
# usage: schemathesis.sh [OPTION OF SCHEMATHESIS]…
# Needs cargo, python3 with venv, and PyPI. The seed is fixed; EXAMPLES (25) is for each operation.
set -euo pipefail
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q 'schemathesis>=4.32,<5'

cargo build -q -p acp-server-cli
token=$(head -c 24 /dev/urandom | od -An -tx1 | tr -d ' \n')
. server/interop/serve.sh
XDG_RUNTIME_DIR=$work ACP_SERVER_TOKEN=$token serve "$work/log" "${CARGO_TARGET_DIR:-target}/debug/acp-server" \
    --requests-per-second 0 --share-dir "$work"
url=${url%/acp}

cd "$work"
timeout 600 "$work/venv/bin/schemathesis" run "$url/openapi.json" -H "Authorization: Bearer $token" \
    --seed 1 --max-examples "${EXAMPLES:-25}" --exclude-path-regex '/events$' --request-timeout 10 \
    --no-color "$@"
kill -0 "$server" || { echo "the server has ended:" >&2; cat "$work/log" >&2; exit 1; }
