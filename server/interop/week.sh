#!/usr/bin/env bash
# A week of use in an hour: hosted agents, clients and the server end in every way, and what they need must
# be given back; see week.py. Needs cargo, Python 3 and Linux.
# Usage: server/interop/week.sh [CHART.svg [SECONDS [SEED]]]      (an hour, seed 1)
set -euo pipefail
cd "$(dirname "$0")"
cargo build -q --release -p acp-server-cli
target=$(realpath "${CARGO_TARGET_DIR:-../../target}")
cd "$OLDPWD"
exec python3 -B "$(dirname "$0")/week.py" "$target/release/acp-server" "$@"
