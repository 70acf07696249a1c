#!/usr/bin/env python3
"""A whole agent without any library, to try the suite with: acp-conformance agent -- python3 agent.py"""

import itertools
import json
import os
import sys

numbers, sessions = itertools.count(1), set()


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(method, params):
    """Returns the result of a request, or raises `Refused`."""
    if method == "initialize":
        return {"protocolVersion": 1, "agentInfo": {"name": "echo", "version": "1.0.0"}}
    if method == "session/new":
        directory = params.get("cwd")
        if not (isinstance(directory, str) and os.path.isabs(directory) and isinstance(params.get("mcpServers"), list)):
            raise Refused(-32602, "expected an absolute `cwd`, and a list of `mcpServers`")
        session = f"session-{next(numbers)}"
        sessions.add(session)
        return {"sessionId": session}
    if method == "session/prompt":
        if params.get("sessionId") not in sessions or not isinstance(params.get("prompt"), list):
            raise Refused(-32602, f"expected a known `sessionId`, and a list as `prompt`; got {params!r:.200}")
        for block in params["prompt"]:
            update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": block.get("text", "")}}
            send(method="session/update", params={"sessionId": params["sessionId"], "update": update})
        return {"stopReason": "end_turn"}
    raise Refused(-32601, f"this agent has no method {method}")


class Refused(Exception):
    def __init__(self, code, message):
        self.error = {"code": code, "message": message}


def handle(line):
    try:
        message = json.loads(line)
    except ValueError:
        return send(id=None, error={"code": -32700, "message": "the line is not JSON"})
    if not isinstance(message, dict) or not isinstance(message.get("method", ""), str):
        return send(id=None, error={"code": -32600, "message": "the line is not a message"})
    # Turns end before the next line is read, so there is nothing to cancel.
    if "method" not in message or "id" not in message:
        return None
    try:
        params = message.get("params") or {}
        if not isinstance(params, dict):
            raise Refused(-32602, "expected an object as `params`")
        return send(id=message["id"], result=answer(message["method"], params))
    except Refused as refused:
        return send(id=message["id"], error=refused.error)


for line in sys.stdin.buffer:
    if line.strip():
        handle(line)
