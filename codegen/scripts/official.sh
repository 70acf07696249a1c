#!/usr/bin/env bash
# Generates and compiles the official documents, unchanged, and prints the duration of each
# step: the generator, the vectors, and rustc on the result with warnings as errors.
#
# usage: official.sh [DIR]   DIR has v1/ and v2/ with schema.json and schema.unstable.json.
#                            Skipped with a reason when it does not exist.
# The documents in the npm package of the TypeScript SDK follow, in old and new releases.
# They are skipped with a reason when npm or its registry is not available, or NPM=0.
# RELEASE=1 builds and measures the optimised generator.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
documents=${1:-$root/../shared/schemas}
package=@agentclientprotocol/sdk
releases=(1.5.0 1.9.0 2.0.0 2.4.0)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

skip() { echo "skipped $1: $2" >&2; }

# Labels and files, in order; a document that occurs again is left out.
labels=()
files=()
declare -A known=()
add() {
    local sum
    sum=$(sha256sum < "$2")
    if [ -n "${known[$sum]:-}" ]; then
        echo "$1 is the same as ${known[$sum]}"
        return
    fi
    known[$sum]=$1
    labels+=("$1")
    files+=("$2")
}

if [ -d "$documents" ]; then
    documents=$(cd "$documents" && pwd)
    for version in v1 v2; do
        for name in schema schema.unstable; do
            add "$version/$name" "$documents/$version/$name.json"
        done
    done
else
    skip "the official documents" "$documents does not exist"
fi

if [ "${NPM:-1}" = 0 ]; then
    skip "the documents on npm" "NPM=0"
elif ! command -v npm > /dev/null; then
    skip "the documents on npm" "npm is not installed"
elif ! npm view --fetch-retries 1 --fetch-timeout 10000 "$package" name > /dev/null 2>&1; then
    skip "the documents on npm" "the registry does not answer, or has no $package"
else
    for release in "${releases[@]}"; do
        mkdir "$work/npm-$release"
        (cd "$work/npm-$release" && npm pack --silent "$package@$release" > archive &&
            tar -xzf "$(tail -n 1 archive)")
        while read -r file; do
            name=${file#"$work/npm-$release/package/schema/"}
            add "npm-$release/${name%.json}" "$file"
        done < <(find "$work/npm-$release/package/schema" -name 'schema*.json' | sort)
    done
fi

[ ${#files[@]} -gt 0 ] || exit 0

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

# Runs a command and prints its duration, as `  step  1.23 s`.
timed() {
    local name=$1 start end
    shift
    start=$(date +%s%N)
    "$@"
    end=$(date +%s%N)
    awk -v name="$name" -v ns=$((end - start)) \
        'BEGIN { printf "  %-10s %7.2f s\n", name, ns / 1e9 }'
}

# A crate per document, in a workspace with the locked dependencies of this one.
crate() { local name=${1//\//-}; echo "$work/crates/${name//./-}"; }
mkdir "$work/crates"
cp Cargo.lock "$work/crates/"
{
    echo '[workspace]'
    echo 'resolver = "3"'
    echo 'members = ["*"]'
} > "$work/crates/Cargo.toml"
for label in "${labels[@]}"; do
    directory=$(crate "$label")
    mkdir -p "$directory/src"
    {
        printf '[package]\nname = "official-%s"\nversion = "0.0.0"\nedition = "2024"\n\n' \
            "$(basename "$directory")"
        printf '[dependencies]\nacp-sdk = { path = "%s/sdk" }\n' "$root"
    } > "$directory/Cargo.toml"
    {
        echo '//! An official document as Rust.'
        echo '#![deny(warnings, missing_docs, missing_debug_implementations, unreachable_pub)]'
        echo 'include!("generated.rs");'
    } > "$directory/src/lib.rs"
    # The first check below compiles the dependencies only.
    echo '// Not generated yet.' > "$directory/src/generated.rs"
done
# Shared with this workspace, whose dependencies are compiled already.
export CARGO_TARGET_DIR=$target
cargo check -q --manifest-path "$work/crates/Cargo.toml"

for index in "${!files[@]}"; do
    label=${labels[$index]}
    file=${files[$index]}
    directory=$(crate "$label")
    echo "$label"
    timed generate "$generator" generate "$file" --out "$directory/src/generated.rs"
    timed vectors "$generator" vectors "$file" --out "$directory/vectors"
    timed compile cargo check -q --manifest-path "$directory/Cargo.toml"
    awk -v lines="$(wc -l < "$directory/src/generated.rs")" \
        -v methods="$("$generator" methods "$file" | tail -n +2 | wc -l)" \
        -v definitions="$(find "$directory/vectors" -name '*.json' | wc -l)" \
        'BEGIN { printf "  %d definitions, %d methods, %d lines of Rust\n", definitions, methods, lines }'
done
