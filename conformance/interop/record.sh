#!/usr/bin/env bash
# Runs an agent and writes what both sides say into a new file in DIR, one {"dir", "msg"} a line,
# in an order that both saw: a line is recorded before it is passed on.
# Usage: record.sh DIR AGENT [ARG...]
set -euo pipefail
file=$(mktemp "$1/XXXXXXXX.jsonl")
shift

pass() {
    while IFS= read -r line || [ -n "$line" ]; do
        printf '{"dir":"%s","msg":%s}\n' "$1" "$line" >>"$file"
        printf '%s\n' "$line"
    done
}

pass c2a | "$@" | pass a2c
