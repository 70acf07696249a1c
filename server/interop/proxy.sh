#!/usr/bin/env bash
# Prompts through nginx with docs/deploy/nginx.conf, over HTTP/2 with server-sent events and over WebSocket: what
# passes without it (words.sh), and turns that go on while nginx is reloaded and killed.
# Needs cargo, openssl and nginx (Debian: nginx-light).
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
bin=${CARGO_TARGET_DIR:-$root/target}/debug
cargo build -q -p acp-server-cli -p acp-cli
folder=$(mktemp -d)
server=
finish() {
    [ ! -s "$folder/nginx.pid" ] || kill "$(cat "$folder/nginx.pid")" 2>/dev/null || true
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    wait
    rm -rf "$folder"
}
trap finish EXIT
failed=0
check() { # NAME COMMAND...
    local name=$1
    shift
    if "$@"; then echo "ok   $name"; else failed=1; echo "FAIL $name"; fi
}

ACP_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export ACP_TOKEN ACP_SERVER_TOKEN=$ACP_TOKEN XDG_RUNTIME_DIR=$folder
name=agents.localhost
. server/interop/serve.sh
serve "$folder/said" "$bin/acp-server" --allow-host $name --cors "https://$name"
inside=${url#http://} inside=${inside%%/*}

openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$name" -addext "subjectAltName=DNS:$name,DNS:localhost" \
    -addext basicConstraints=critical,CA:FALSE -keyout "$folder/key.pem" -out "$folder/certificate.pem" 2>/dev/null
outside=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
sed -e "s|127.0.0.1:5173|$inside|; s|listen 443|listen 127.0.0.1:$outside|; s|agents.example.org;|$name localhost;|" \
    -e "s|/etc/ssl/agents.*;|$folder/certificate.pem;|; s|/etc/ssl/private/.*;|$folder/key.pem;|" \
    docs/deploy/nginx.conf >"$folder/site.conf"
mkdir "$folder/logs" "$folder/temp"
# Old workers end their connections soon after a reload, so that it is a cut.
cat >"$folder/nginx.conf" <<END
pid $folder/nginx.pid;
error_log $folder/logs/error.log;
worker_processes 2;
worker_shutdown_timeout 500ms;
events { worker_connections 1024; }
http {
    access_log $folder/logs/access.log;
    client_body_temp_path $folder/temp/body;
    proxy_temp_path $folder/temp/proxy;
    fastcgi_temp_path $folder/temp/fastcgi;
    scgi_temp_path $folder/temp/scgi;
    uwsgi_temp_path $folder/temp/uwsgi;
    include $folder/site.conf;
}
END
nginx() { command nginx -p "$folder" -e "$folder/logs/error.log" -c "$folder/nginx.conf" "$@"; }
nginx

# words.sh starts `acp` with its own options; the certificate is ours.
printf '#!/bin/sh\nrun=$1\nshift\nexec "%s/acp" "$run" --ca-file "%s/certificate.pem" "$@"\n' "$bin" "$folder" >"$folder/acp"
chmod +x "$folder/acp"
for scheme in https wss; do
    printf -- '-- %s through nginx\n' "$scheme"
    conformance/interop/words.sh "$folder/acp" "$scheme://localhost:$outside/acp" || failed=1
done

printf -- '-- nginx is reloaded four times and killed once during turns of 30 s\n'
for scheme in https wss; do
    "$folder/acp" run --timeout 120 --url "$scheme://localhost:$outside/acp" slow >"$folder/$scheme" 2>"$folder/$scheme.err" &
    eval "$scheme=\$!"
done
said() { [ "$(wc -l <"$folder/https")" -ge "$1" ] && [ "$(wc -l <"$folder/wss")" -ge "$1" ]; }
for cut in 20 70 120 kill 220; do
    if [ "$cut" = kill ]; then
        for _ in $(seq 300); do said 170 && break || sleep 0.1; done
        main=$(cat "$folder/nginx.pid")
        mapfile -t workers < <(pgrep -P "$main")
        # The main process first: it would replace a worker.
        kill -KILL "$main" "${workers[@]}"
        sleep 1
        nginx
        continue
    fi
    for _ in $(seq 300); do said "$cut" && break || sleep 0.1; done
    nginx -s reload
done
seq 300 | sed 's/^/tick /' >"$folder/expected"
for scheme in https wss; do
    code=0
    wait "${!scheme}" || code=$?
    check "$scheme: the turn ends" [ "$code" -eq 0 ]
    check "$scheme: all of it, once and in order" diff -q "$folder/expected" <(grep . "$folder/$scheme")
done
connections=$(grep -c '"POST /acp HTTP/2.0" 200' "$folder/logs/access.log" || true)
sockets=$(grep -c '"GET /acp HTTP/1.1" 101' "$folder/logs/access.log" || true)
streams=$(grep -c '"GET /acp HTTP/2.0" 200' "$folder/logs/access.log" || true)
echo "seen by nginx: $connections connections, $streams streams and $sockets WebSockets ended"

auth="Authorization: Bearer $ACP_TOKEN"
page() { curl -s -o /dev/null -w '%{http_code}' --cacert "$folder/certificate.pem" --resolve "$name:$outside:127.0.0.1" \
    "$@" "https://$name:$outside/sessions"; }
check "the name of the site" [ "$(page -H "$auth")" = 200 ]
check "another site" [ "$(page -H "$auth" -H 'Origin: https://evil.example')" = 403 ]
exit $failed
