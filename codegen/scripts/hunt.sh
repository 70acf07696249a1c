#!/usr/bin/env bash
# Generates from the JSON Schemas of other projects and compiles the result; prints what is refused,
# with member and reason, and the counts. Fails when a document crashes the generator or when the
# text does not compile.
#
# usage: hunt.sh FOLDER   FOLDER has the documents, *.json, of any draft.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(realpath "${1:?usage: hunt.sh FOLDER}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$root"
cargo run --quiet -p acp-codegen --example hunt -- "$folder" "$work" | tee "$work/report"
cp Cargo.lock "$work"
if ! CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target} \
  cargo check --quiet --manifest-path "$work/Cargo.toml" 2>"$work/errors"; then
  cat "$work/errors"
  echo "the generated text does not compile; module dN is the document with that number in the report"
  exit 1
fi
echo "the generated text compiles"
! grep -q ": CRASHED: " "$work/report"
