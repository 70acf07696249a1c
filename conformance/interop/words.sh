#!/usr/bin/env bash
# Drives an agent with our client, a prompt at a time: one line per step, exit code 1 if a step failed.
# Usage: words.sh ACP AGENT [ARG...]   (ACP is our binary, the agent understands the words of acp-server)
#        words.sh ACP URL              (the same, of a remote agent on this machine)
set -euo pipefail
acp=$1
shift
case $1 in
    http://* | ws://* | https://* | wss://*) agent=(--url "$1") ;;
    *) agent=(-- "$@") ;;
esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
work=$folder/work
mkdir "$work"
failed=0

# start OPTION... PROMPT: what comes goes to $folder/out and $folder/err.
# The limit, in seconds, is for an agent that hangs.
start() {
    # Emptied here, and not by the command: nobody may take the last run's words for this one's.
    : >"$folder/out"
    "$acp" run --timeout "${limit:-60}" --cwd "$work" "$@" "${agent[@]}" \
        >"$folder/out" 2>"$folder/err" </dev/null &
    pid=$!
}

# end: waits for what was started; leaves the exit code in $code.
end() {
    code=0
    wait "$pid" || code=$?
}

run() {
    start "$@"
    end
}

# expect NAME CODE FILE TEXT: judges the last run by its exit code and by a text in `out` or `err`.
expect() {
    if [ "$code" -eq "$2" ] && grep -qF -- "$4" "$folder/$3"; then
        echo "ok   $1"
        return
    fi
    failed=1
    echo "FAIL $1: exit code $code, expected $2 and \"$4\" in std$3; it says:"
    head -c 2000 "$folder/out" "$folder/err"
}

run "Hello, wörld"
expect "echo" 0 out "Hello, wörld"
run think
expect "the answer goes to standard output" 0 out "I have thought."
expect "a thought goes to standard error" 0 err "Let me think."
run plan
expect "plan" 0 err "Read"
run --approve-all tool
expect "tool call" 0 err "Edit example.txt"
run --approve-all permission
expect "permission allowed" 0 out "Permission: allow"
run --deny-all permission
expect "permission refused" 0 out "Permission: reject"
run --approve-reads permission
expect "permission to run a command refused where only reads are allowed" 0 out "Permission: reject"
run --approve-all "write $work/file.txt written by the agent"
cp "$work/file.txt" "$folder/out"
expect "write a file" 0 out "written by the agent"
echo "read by the agent, ünïcode" >"$work/file.txt"
run "read $work/file.txt"
expect "read a file" 0 out "read by the agent, ünïcode"
echo secret >"$folder/outside.txt"
run "read $folder/outside.txt"
expect "a file outside the working directory is not read" 1 err "outside.txt"
run --approve-all "terminal echo from-a-terminal"
expect "terminal" 0 out "from-a-terminal"
run --deny-all "terminal echo from-a-terminal"
expect "a terminal is refused where nothing is allowed" 1 err "refused"
run "stream 1000"
wc -c <"$folder/out" >"$folder/err"
expect "1000 chunks of 60 characters" 0 err "60001"
run --format quiet "stream 1"
expect "format quiet" 0 out "00000000 the quick brown fox"
run --format json "stream 1"
expect "format json" 0 out '"exitCode":0'
run fail
expect "failure" 1 err "-32603"
limit=2 run slow
expect "a time limit cancels the turn" 5 err "the time is up"
start slow
until [ -s "$folder/out" ] || ! kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
kill -INT "$pid"
end
expect "an interrupt cancels the turn" 130 out "tick"

exit "$failed"
