# The official SDKs of other languages, the suite against what is written with them, and how steps are counted.
# Sourced, with $here (this folder), $cache (a folder of ours) and $bin (our commands).
passed=0 failed=0

say() { printf '\n-- %s\n' "$*"; }

# Each SDK is installed once for a list of pinned versions; the folder is named after the list.
sum() { cat "$@" | cksum | cut -d ' ' -f 1; }

# install_python [REQUIREMENTS...]: leaves the interpreter in $python.
install_python() {
    local lists=("$here/python/requirements.txt" "$@") venv
    venv=$cache/python-$(sum "${lists[@]}")
    python=$venv/bin/python
    [ ! -e "$venv/ready" ] || return 0
    say "installing the Python SDK"
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check "${lists[@]/#/-r}"
    touch "$venv/ready"
}

# Leaves the folder of the programs in $typescript. Modules are looked up beside the script, so the scripts are
# copied to where the SDK is.
install_typescript() {
    typescript=$cache/typescript-$(sum "$here"/typescript/package*.json)
    if [ ! -e "$typescript/ready" ]; then
        say "installing the TypeScript SDK"
        rm -rf "$typescript"
        mkdir -p "$typescript"
        cp "$here"/typescript/package*.json "$typescript"
        (cd "$typescript" && npm ci --silent --no-audit --no-fund)
        touch "$typescript/ready"
    fi
    cp "$here"/typescript/*.mjs "$typescript"
}

# suite NAME PARTY OPTION...: runs the suite against an agent or a client. What it finds must be what known.txt has
# for NAME; with a kind, as in NAME:bare, what it has for NAME may also be missing. The report goes to $reports.
suite() {
    local name=$1 party=$2 code=0
    local file=$reports/${name/:/-}-$party
    shift 2
    "$bin/acp-conformance" "$party" --json "$file.json" "$@" >"$file.txt" || code=$?
    [ "$code" -le 1 ] || [ "$code" -eq 3 ] || return "$code"
    sed -n "s/^\(${name%:*}\|${name/:/-}\) \([^ :]*\): .*/\2/p" "$here/known.txt" | sort -u >"$cache/known"
    sed -n 's/^FAIL \([^ ]*\) (\(must\|capability\|derived\|should\)): .*/\1/p' "$file.txt" | sort >"$cache/found"
    comm -13 "$cache/known" "$cache/found" >"$cache/new"
    while read -r id; do sed -n "/^FAIL $id /,/^$/p" "$file.txt"; done <"$cache/new"
    tail -n 1 "$file.txt"
    [ ! -s "$cache/new" ] || return 1
    case $name in *:*) return 0 ;; esac
    comm -23 "$cache/known" "$cache/found" | sed 's/^/FAIL not found any more, take it out of known.txt: /'
    cmp -s "$cache/known" "$cache/found"
}

# Runs a command, shows what it says, and counts whether it succeeded.
try() {
    local name=$1 begun=$SECONDS code=0
    shift
    say "$name"
    "$@" || code=$?
    if [ "$code" -eq 0 ]; then
        passed=$((passed + 1))
        echo "passed: $name ($((SECONDS - begun)) s)"
    else
        echo "FAILED: $name (exit code $code; $((SECONDS - begun)) s)"
        failed=$((failed + 1))
    fi
}
