#!/usr/bin/env bash
# Uses the web page of `acp-server serve` in a real browser. Needs cargo, npm and the network; installs
# Debian's Chromium if there is none. ACP_SERVER names a binary that is built already.
# Usage: server/interop/page.sh [SCREENSHOT-FOLDER]
set -euo pipefail
server=${ACP_SERVER:+$(realpath "$ACP_SERVER")}
cd "$(dirname "$0")"

# Of the npm registry. The browser is not downloaded with it.
playwright=playwright-core@1.64.1
# Checks accessibility.
axe=axe-core@4.14.1

browser=$(command -v chromium || true)
if [ -z "$browser" ]; then
    sudo=$([ "$(id -u)" = 0 ] || echo sudo)
    $sudo apt-get update -qq >&2
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >&2
    browser=$(command -v chromium)
fi
if [ -z "$server" ]; then
    cargo build -q -p acp-server-cli
    server=$(realpath "${CARGO_TARGET_DIR:-../../target}")/debug/acp-server
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp page*.mjs hostile.mjs talkative.mjs "$folder"
mkdir "$folder/page"
cp ../remote/src/page/*.js "$folder/page"
(cd "$folder" && npm install --silent --no-fund --no-audit "$playwright" "$axe" >&2)
pictures=${1:+$(realpath "$1")}
(cd "$folder" && timeout 300 node page.mjs "$server" "$browser" "$pictures")
