#!/usr/bin/env bash
# Makes the wheel and the npm package, and uses each from an empty environment.
# Usage: conformance/packages/try.sh [PROFILE]      (`dev` or `release`; needs cargo, Python 3, npm and the network)
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(realpath "$here/../..")
profile=${1:-release}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Tests the agent with the command in a folder, and nothing else of this checkout.
try() {
    cp "$here/../examples/agent.py" "$folder/agent.py"
    (cd "$folder" && env -i PATH="$1:/usr/bin:/bin" HOME="$folder" acp-conformance agent --quick -- python3 agent.py) |
        tee "$folder/said" | tail -n 1
    grep -q '^conformant: ' "$folder/said" || { cat "$folder/said" >&2; exit 1; }
}

python3 -m venv "$folder/maker"
"$folder/maker/bin/pip" install -q --disable-pip-version-check 'maturin>=1.9,<2'
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
(cd "$here/python" && "$folder/maker/bin/maturin" build -q --profile "$profile" --locked -o "$folder")
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install -q --disable-pip-version-check "$folder"/acp_conformance-*.whl
echo "-- the wheel: $(basename "$folder"/acp_conformance-*.whl)"
try "$folder/python/bin"

package=$("$here/npm/pack.sh" "$folder/python/bin/acp-conformance" "$folder")
mkdir "$folder/node"
(cd "$folder/node" && npm install --silent --no-audit --no-fund "$package")
echo "-- the npm package: $(basename "$package")"
try "$folder/node/node_modules/.bin"
