#!/usr/bin/env python3
"""Proxies of this project under the official conductor, and the other way round.

    cargo install agent-client-protocol-conductor --version 5.0.0 --root DIR
    python3 client/interop/conductor.py target/debug DIR/bin/agent-client-protocol-conductor

Runs a turn through each chain, with the reference agent, and looks for what the proxies in it did.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

SECRET = "AKIAABCDEFGHIJKLMNOP"


class Agent:
    """A chain, as its client sees it."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.last = 0
        self.said = ""

    def call(self, method, **params):
        self.last += 1
        request = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.last and "method" not in message:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']}")
                return message["result"]
            content = message.get("params", {}).get("update", {}).get("content", {})
            self.said += content.get("text", "") if isinstance(content, dict) else ""
        raise SystemExit(f"the chain has ended during {method}")

    def close(self):
        self.process.stdin.close()
        return self.process.wait(timeout=30)


def turn(name, command, audit):
    agent = Agent(command)
    agent.call("initialize", protocolVersion=1, clientCapabilities={})
    session = agent.call("session/new", cwd="/tmp", mcpServers=[])["sessionId"]
    prompt = [{"type": "text", "text": f"Hello, {SECRET}"}]
    result = agent.call("session/prompt", sessionId=session, prompt=prompt)
    assert result["stopReason"] == "end_turn", result
    assert SECRET not in agent.said and "[redacted]" in agent.said, agent.said
    code = agent.close()
    assert code == 0, f"exit code {code}"
    assert audit.exists(), "the audit was not opened"
    audit.unlink()
    print(f"ok: {name}")


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    folder, official = Path(sys.argv[1]).resolve(), sys.argv[2]
    acp, agent = f"{folder}/acp", f"{folder}/acp-conformance reference-agent"
    with tempfile.TemporaryDirectory() as temporary:
        audit = Path(temporary, "audit.jsonl")
        redact, log = f"{acp} conduct redact", f"{acp} conduct 'audit {audit}'"
        turn("our proxies under the official conductor", [official, "agent", redact, log, agent], audit)
        inner = f"{official} proxy \"{redact}\" \"{acp} conduct \\\"audit {audit}\\\"\""
        turn("the official conductor as a proxy of ours", [acp, "conduct", inner, "--", *agent.split()], audit)
        both = [acp, "conduct", redact, log, "--", official, "agent", agent]
        turn("the official conductor as the agent of ours", both, audit)


main()
