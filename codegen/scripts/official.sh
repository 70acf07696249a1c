#!/usr/bin/env bash
# Generates and compiles the official documents as they are, and says how long each step
# takes: the generator, the vectors, and rustc on the result with warnings as errors.
#
# usage: official.sh [DIR]   DIR has v1/ and v2/ with schema.json and schema.unstable.json;
#                            without it the step is skipped with a reason.
# RELEASE=1 measures the optimised generator, at the price of building it.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
documents=${1:-$root/../shared/schemas}

if [ ! -d "$documents" ]; then
    echo "skipped the official documents: $documents is not here" >&2
    exit 0
fi
documents=$(cd "$documents" && pwd)

profile=debug
flags=()
if [ -n "${RELEASE:-}" ]; then
    profile=release
    flags=(--release)
fi
cd "$root"
cargo build -q -p acp-codegen ${flags[@]+"${flags[@]}"}
target=${CARGO_TARGET_DIR:-$root/target}
generator=$target/$profile/acp-codegen

crates=$(mktemp -d)
trap 'rm -rf "$crates"' EXIT

# Runs a command and prints how long it took, as `  step  1.23 s`.
timed() {
    local name=$1 start end
    shift
    start=$(date +%s%N)
    "$@"
    end=$(date +%s%N)
    awk -v name="$name" -v ns=$((end - start)) \
        'BEGIN { printf "  %-10s %7.2f s\n", name, ns / 1e9 }'
}

# A workspace of its own, with the versions that this one is tested with.
names=()
for version in v1 v2; do
    for name in schema schema.unstable; do
        names+=("$version-${name/./-}")
    done
done
cp Cargo.lock "$crates/"
{
    echo '[workspace]'
    echo 'resolver = "3"'
    printf 'members = ['
    printf '"%s", ' "${names[@]}"
    echo ']'
} > "$crates/Cargo.toml"
for name in "${names[@]}"; do
    mkdir -p "$crates/$name/src"
    {
        printf '[package]\nname = "official-%s"\nversion = "0.0.0"\nedition = "2024"\n\n' "$name"
        printf '[dependencies]\nacp-sdk = { path = "%s/sdk" }\n' "$root"
    } > "$crates/$name/Cargo.toml"
    {
        echo '//! An official document as Rust.'
        echo '#![deny(warnings, missing_docs, missing_debug_implementations, unreachable_pub)]'
        echo 'include!("generated.rs");'
    } > "$crates/$name/src/lib.rs"
    # So that the first compilation below is not that of the dependencies.
    echo '// Not generated yet.' > "$crates/$name/src/generated.rs"
done
# Shared with this workspace, whose dependencies are compiled already.
export CARGO_TARGET_DIR=$target
cargo check -q --manifest-path "$crates/Cargo.toml"

for version in v1 v2; do
    for name in schema schema.unstable; do
        crate=$crates/$version-${name/./-}
        file=$documents/$version/$name.json
        echo "$version/$name.json"
        timed generate "$generator" generate "$file" --out "$crate/src/generated.rs"
        timed vectors "$generator" vectors "$file" --out "$crate/vectors"
        timed compile cargo check -q --manifest-path "$crate/Cargo.toml"
        awk -v lines="$(wc -l < "$crate/src/generated.rs")" \
            -v methods="$("$generator" methods "$file" | tail -n +2 | wc -l)" \
            -v definitions="$(find "$crate/vectors" -name '*.json' | wc -l)" \
            'BEGIN { printf "  %d definitions, %d methods, %d lines of Rust\n", definitions, methods, lines }'
    done
done
