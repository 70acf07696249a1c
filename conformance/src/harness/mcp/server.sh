#!/bin/sh
# An MCP server without tools. It writes into the folder of its first argument how it was started:
# a file .started, which becomes .connected when the client initializes it.
PATH=${PATH:-/usr/bin:/bin}
record=$1/$$
{
    for word in "$@"; do printf 'arg=%s\n' "$word"; done
    printf 'variable=%s\n' "$ACP_CONFORMANCE_PROBE"
} >"$record.part" || exit 1
mv "$record.part" "$record.started"
while IFS= read -r line; do
    id=$(printf '%s\n' "$line" | sed -n -e 's/.*"id" *: *\("[^"]*"\).*/\1/p' -e 's/.*"id" *: *\(-\{0,1\}[0-9][0-9]*\).*/\1/p')
    case $line in
    *'"initialize"'*)
        version=$(printf '%s\n' "$line" | sed -n 's/.*"protocolVersion" *: *"\([^"]*\)".*/\1/p')
        mv "$record.started" "$record.connected"
        printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"%s","capabilities":{"tools":{}},"serverInfo":{"name":"acp-conformance","version":"1"}}}\n' "$id" "$version"
        ;;
    *'"tools/list"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}\n' "$id"
        ;;
    *'"ping"'*)
        printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id"
        ;;
    *)
        if [ -n "$id" ]; then
            printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id"
        fi
        ;;
    esac
done
