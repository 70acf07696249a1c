#!/usr/bin/env python3
"""Proxies of this project under the official conductor, official proxies under ours, and both at the ends of a chain.

    client/interop/conductor.sh            (builds what is needed, then runs this)
    conductor.py FOLDER OFFICIAL           FOLDER has the commands; OFFICIAL is the program of `official/`
    conductor.py agent                     an agent that calls a tool of each MCP server of its session

Runs a turn through each chain and looks for what the proxies in it did.
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

SECRET = "AKIAABCDEFGHIJKLMNOP"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}


class Peer:
    """A program that is sent JSON-RPC requests, line by line."""

    def __init__(self, command, environment=None):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, env=environment, **pipes)
        self.last = 0
        self.said = ""

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def call(self, method, **params):
        self.last += 1
        self.send(id=self.last, method=method, params=params)
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.last and "method" not in message:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
            content = message.get("params", {}).get("update", {}).get("content", {})
            self.said += content.get("text", "") if isinstance(content, dict) else ""
        raise SystemExit(f"the program has ended during {method}")

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=30)


def ask_tool(server):
    """Calls the first tool of a server as an agent is told of it, and returns its text."""
    environment = os.environ | {item["name"]: item["value"] for item in server["env"]}
    peer = Peer([server["command"], *server["args"]], environment)
    peer.call("initialize", **HELLO)
    peer.send(method="notifications/initialized")
    tool = peer.call("tools/list")["tools"][0]["name"]
    result = peer.call("tools/call", name=tool, arguments={"name": "the tool", "text": "two\nlines"})
    peer.close()
    return json.dumps(result["content"])


def agent():
    """An agent that only knows MCP servers that are programs."""
    servers = []
    for line in sys.stdin:
        request = json.loads(line)
        method, params = request.get("method"), request.get("params", {})
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {}}
        elif method == "session/new":
            servers, result = params["mcpServers"], {"sessionId": "s"}
        elif method == "session/prompt":
            said = [ask_tool(server) for server in servers] + [block["text"] for block in params["prompt"]]
            for text in said:
                update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
                tell = {"method": "session/update", "params": {"sessionId": "s", "update": update}}
                print(json.dumps({"jsonrpc": "2.0", **tell}), flush=True)
            result = {"stopReason": "end_turn"}
        else:
            continue
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


def turn(name, command, audit=None, said=()):
    chain = Peer(command)
    chain.call("initialize", protocolVersion=1, clientCapabilities={})
    session = chain.call("session/new", cwd="/tmp", mcpServers=[])["sessionId"]
    prompt = [{"type": "text", "text": f"Hello, {SECRET}"}]
    result = chain.call("session/prompt", sessionId=session, prompt=prompt)
    assert result["stopReason"] == "end_turn", result
    judge(name, chain.said, audit, said)
    code = chain.close()
    assert code == 0, f"exit code {code}"


def judge(name, text, audit, said):
    assert SECRET not in text and "[redacted]" in text, text
    for part in said:
        assert part in text, f"not said: {part!r} in {text!r}"
    if audit:
        assert audit.exists(), "the audit was not opened"
        audit.unlink()
    print(f"ok: {name}")


def main():
    if sys.argv[1:] == ["agent"]:
        return agent()
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    folder, official = Path(sys.argv[1]).resolve(), str(Path(sys.argv[2]).resolve())
    acp, reference = f"{folder}/acp", f"{folder}/acp-conformance reference-agent"
    conductor, proxy = f"{official} conductor", f"{official} proxy"
    passed = ["Passed by the official proxy."]
    with tempfile.TemporaryDirectory() as temporary:
        audit = Path(temporary, "audit.jsonl")
        redact, log = f"{acp} conduct redact", f"{acp} conduct 'audit {audit}'"
        ours = [official, "conductor", "agent", redact, log, reference]
        turn("our proxies under the official conductor", ours, audit)
        ours.insert(4, proxy)
        turn("an official proxy between ours, under the official conductor", ours, audit, passed)
        inner = f"{conductor} proxy \"{redact}\" \"{acp} conduct \\\"audit {audit}\\\"\""
        turn("the official conductor as a proxy of ours", [acp, "conduct", inner, "--", *reference.split()], audit)
        both = [acp, "conduct", redact, log, "--", official, "conductor", "agent", reference]
        turn("the official conductor as the agent of ours", both, audit)
        with_tool = [acp, "conduct", "redact", proxy, "--", sys.executable, "-B", __file__, "agent"]
        told = [*passed, "the tool is in the official proxy"]
        turn("an official proxy and its tool under our conductor", with_tool, said=told)
        bridge = shlex.join([acp, "conduct", "redact", "--", sys.executable, "-B", __file__, "agent"])
        tools = [official, "conductor", "agent", f"{folder}/examples/editor_tools", proxy, bridge]
        turn("our tool and an official one under the official conductor", tools, said=[*told, '"2"'])
        ends = [acp, "conduct", redact, proxy, f"audit {audit}", "--", official, "agent"]
        client = [official, "client", shlex.join(ends), f"Hello, {SECRET}"]
        answer = subprocess.run(client, capture_output=True, text=True, timeout=60, check=True).stdout
        judge("our conductor between the official client and agent", answer, audit, passed)


main()
