"""A scripted agent for week.py, on standard input and output. The first word of a prompt says what it does:

  say      answers with one chunk
  work     works for two seconds, and takes input meanwhile
  leave    starts a process in a session of its own, which never ends by itself
  die      starts such a process and kills itself
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid

lock = threading.Lock()
cancelled = set()


def send(**message):
    with lock:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def say(session, text):
    send(method="session/update", params={"sessionId": session, "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}})


def leave():
    subprocess.Popen(["sleep", "100000"], start_new_session=True, stdin=subprocess.DEVNULL,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def prompt(number, params):
    session, word = params["sessionId"], params["prompt"][0]["text"].split()[0]
    cancelled.discard(session)
    say(session, f"{word} " + "x" * 200)
    if word in ("leave", "die"):
        leave()
    if word == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if word == "work":
        for step in range(20):
            if session in cancelled:
                return send(id=number, result={"stopReason": "cancelled"})
            say(session, f"step {step}")
            time.sleep(0.1)
    send(id=number, result={"stopReason": "end_turn"})


CAPABILITIES = {
    "loadSession": True,
    "sessionCapabilities": {"resume": {}, "fork": {}, "delete": {}},
    "_meta": {"acp-sdk": {"session": {"steer": True}}},
}

for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "initialize":
        send(id=number, result={"protocolVersion": 1, "agentCapabilities": CAPABILITIES,
                                "agentInfo": {"name": "week", "version": "1"}})
    elif method in ("session/new", "session/fork"):
        send(id=number, result={"sessionId": uuid.uuid4().hex})
    elif method == "session/prompt":
        threading.Thread(target=prompt, args=(number, params), daemon=True).start()
    elif method == "session/cancel":
        cancelled.add(params["sessionId"])
    elif method == "_acp-sdk/session/steer":
        send(id=number, result={"outcome": "injected"})
    elif method in ("session/load", "session/resume", "session/delete", "session/close"):
        send(id=number, result={})
    elif number is not None:
        send(id=number, error={"code": -32601, "message": f"unknown method {method}"})
