"""What a server at a URL does with requests about which the proposal and the SDKs differ: a line for each.

Usage: statuses.py URL
"""

import json
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

URL = urlsplit(sys.argv[1])
HELLO = {"protocolVersion": 1, "clientCapabilities": {}}
WAIT = 5


def message(method, params=None, number=1):
    body = {"jsonrpc": "2.0", "id": number, "method": method}
    return body if params is None else {**body, "params": params}


def open_request(method, body=None, connection=None, session=None, **headers):
    """Sends a request; returns the response, its body unread."""
    http = HTTPConnection(URL.hostname, URL.port, timeout=WAIT)
    names = {"Acp-Connection-Id": connection, "Acp-Session-Id": session}
    headers = {name.replace("_", "-"): value for name, value in {**names, **headers}.items() if value}
    if body is not None:
        body = body if isinstance(body, (str, bytes)) else json.dumps(body)
        headers.setdefault("Content-Type", "application/json")
    headers.setdefault("Accept", "text/event-stream" if method == "GET" else "application/json")
    try:
        http.request(method, URL.path, body, headers)
        response = http.getresponse()
    except ConnectionError as error:
        # A server may refuse before it has read all.
        return Refused(type(error).__name__)
    response.http = http
    return response


class Refused:
    http = None

    def __init__(self, status):
        self.status = status

    def getheader(self, _):
        return None

    def read(self):
        return b""


def status(method, *args, **kwargs):
    response = open_request(method, *args, **kwargs)
    text = "" if method == "GET" and response.status == 200 else response.read().decode(errors="replace")
    code = ""
    try:
        error = json.loads(text).get("error")
        code = f" {error['code']}" if isinstance(error, dict) and "code" in error else ""
    except (ValueError, AttributeError):
        pass
    return f"{response.status}{code}"


def connect(**headers):
    response = open_request("POST", message("initialize", HELLO), **headers)
    response.read()
    return response.getheader("acp-connection-id")


def event(stream):
    """The next message of a stream, or why there is none."""
    try:
        while line := stream.readline():
            if line.startswith(b"data:") and line[5:].strip():
                return json.loads(line[5:])
        return {"end": True}
    except TimeoutError:
        return {"nothing": True}


def session(connection, stream, number):
    open_request("POST", message("session/new", {"cwd": "/", "mcpServers": []}, number), connection).read()
    while (answer := event(stream)).get("id") != number:
        assert "nothing" not in answer and "end" not in answer, answer
    return answer["result"]["sessionId"]


def prompt(text, session=None, number=9):
    params = {"prompt": [{"type": "text", "text": text}]}
    return message("session/prompt", {**params, "sessionId": session} if session else params, number)


def streams_of_load(connection, stream, known, number):
    """Loads a session with both streams open; returns which stream has its answer."""
    own = open_request("GET", connection=connection, session=known)
    place = {"sessionId": known, "cwd": "/", "mcpServers": []}
    posted = status("POST", message("session/load", place, number), connection, known)
    if own.status != 200:
        posted = f"{posted} after GET {own.status}"
    for name, source in (("connection", stream), ("session", own)):
        if source.status != 200:
            continue
        while "nothing" not in (got := event(source)) and "end" not in got:
            if got.get("id") == number and "method" not in got:
                outcome = "error" if "error" in got else "answer"
                return f"{posted}, {outcome} on the stream of the {name}"
    return f"{posted}, no answer"


def rows():
    yield "array", status("POST", [message("initialize", HELLO)])
    first = connect()
    yield "array, in a connection", status("POST", [message("session/list", {})], first)
    yield "no JSON", status("POST", "{oops")
    yield "no JSON, in a connection", status("POST", "{oops", first)
    yield "initialize in a connection", status("POST", message("initialize", HELLO), first)
    yield "no connection id", status("POST", message("session/list", {}))
    yield "unknown connection", status("POST", message("session/list", {}), "nothing")
    yield "content type text/plain", status("POST", message("initialize", HELLO), Content_Type="text/plain")
    stream = open_request("GET", connection=first)
    known = session(first, stream, 2)
    yield "session in the parameters alone", status("POST", prompt("ping", known, 3), first)
    yield "session in the header alone", status("POST", prompt("ping", None, 4), first, known)
    other = session(first, stream, 5)
    yield "header and parameters disagree", status("POST", prompt("ping", known, 6), first, other)
    yield "session nowhere", status("POST", prompt("ping", None, 7), first)
    own = open_request("GET", connection=first, session=known)
    yield "GET of a session", str(own.status)
    yield "second GET of it", status("GET", connection=first, session=known)
    yield "GET of an unknown session", status("GET", connection=first, session="nothing")
    yield "GET that accepts JSON", status("GET", connection=first, Accept="application/json")
    open_request("POST", prompt("permission", other, 8), first, other).read()
    asking = open_request("GET", connection=first, session=other)
    while (asked := event(asking)).get("method") != "session/request_permission":
        assert "nothing" not in asked and "end" not in asked, asked
    outcome = {"jsonrpc": "2.0", "id": asked["id"], "result": {"outcome": {"outcome": "cancelled"}}}
    yield "answer without the session", status("POST", outcome, first)
    yield "foreign Origin", status("POST", message("initialize", HELLO), Origin="http://evil.example")
    yield "foreign Host", status("POST", message("initialize", HELLO), Host="evil.example")
    yield "PUT", status("PUT", message("session/list", {}), first)
    large = status("POST", message("initialize", {**HELLO, "x": "x" * (17 << 20)}))
    # A server that does not read the rest may cut the connection before its answer is read.
    yield "17 MiB", "413" if large in ("BrokenPipeError", "ConnectionResetError") else large
    second = connect()
    stream = open_request("GET", connection=second)
    yield "load by another connection", streams_of_load(second, stream, known, 10)
    yield "DELETE without an id", status("DELETE")
    yield "DELETE", status("DELETE", connection=second)
    yield "DELETE again", status("DELETE", connection=second)


for name, seen in rows():
    print(f"{name}: {seen}", flush=True)
