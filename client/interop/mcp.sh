#!/usr/bin/env bash
# Has tasks done through `acp mcp` by a host on the official Python SDK of MCP.
# Usage: mcp.sh ACP AGENT...
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
# The version is pinned here; the folder is named after it.
version=2.3.0
venv=${CARGO_TARGET_DIR:-$root/target}/interop/mcp-$version
if [ ! -e "$venv/ready" ]; then
    echo "installing the Python SDK of MCP $version" >&2
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check "mcp==$version"
    touch "$venv/ready"
fi
timeout 60 "$venv/bin/python" -B "$here/mcp_host.py" "$@"
echo "acp mcp: the official Python client: passed"
