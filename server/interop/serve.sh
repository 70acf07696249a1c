# To be sourced by scripts that need a running server.

# serve LOG BINARY [OPTION...]: starts `BINARY serve` on a free port and waits until it listens. What it prints
# is in LOG. Sets `server` to its process, which the caller ends, and `url` to the address of /acp.
serve() {
    local log=$1 binary=$2
    # The server may open it later than the loop reads it.
    : >"$log"
    "$binary" serve --port 0 --store memory "${@:3}" 2>"$log" &
    server=$!
    for _ in $(seq 300); do
        url=$(sed -n 's/.*listening on \(http[^ ]*\).*/\1/p' "$log")
        [ -z "$url" ] || return 0
        kill -0 "$server" 2>/dev/null || break
        sleep 0.1
    done
    echo "$binary serve does not listen; it printed:" >&2
    cat "$log" >&2
    return 1
}
