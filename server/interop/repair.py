#!/usr/bin/env python3
"""A repair by acp-agent against a model of a script: a failing test, read, edit, run, pass.

    repair.py FOLDER ACP-AGENT [API ...]

FOLDER has fake_llm.py, which speaks the wire formats of providers. For each API (openai, anthropic,
openai-responses, gemini): the whole repair; a refused edit; and in each phase of the turn a cancellation and a
kill -9, after which the session is loaded again and the repair goes on to its end. Exit code 1 if anything differs.
"""

import json
import os
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

SOON = 30
BROKEN, MENDED = "echo $(($1 - $2))\n", "echo $(($1 + $2))\n"
TEST = 'test "$(sh add.sh 1 2)" = 3 && echo PASSED || { echo FAILED; exit 1; }\n'
# What the model does, and by what it knows in the conversation that it has been done.
PHASES = ["test", "read", "edit", "again"]


def plan(fake, kind, body, _):
    """The next step of the repair: what the newest results have not shown yet."""
    said = fake.history(kind, body)
    since = [text for role, text in said if role == "tool"]
    if any("does not allow" in text for text in since):
        return {"text": ["I stop, ", "because I may not edit."]}
    shows = lambda word: any(word in text for text in since)
    step = (("shell", {"command": "sh test.sh"}) if not shows("FAILED") else
            ("read", {"path": "add.sh"}) if not shows("$1 - $2") else
            ("edit", {"path": "add.sh", "old_text": "-", "new_text": "+"}) if not shows("Changed add.sh") else
            ("shell", {"command": "sh test.sh"}) if not shows("PASSED") else None)
    if step is None:
        return {"text": ["The test ", "passes."]}
    return {"text": ["Next: ", step[0]], "tool": step}


class Agent:
    """The agent over its standard input and output."""

    def __init__(self, command, home, workspace):
        env = {**os.environ, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, "FAKE_KEY": "sk-none"}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=workspace, env=env,
                                        stderr=subprocess.DEVNULL, text=True)
        self.lines, self.requests, self.asked = queue.Queue(), 0, []
        threading.Thread(target=self.read, daemon=True).start()
        self.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def begin(self, method, params):
        self.requests += 1
        self.send(id=self.requests, method=method, params=params)
        return self.requests

    def until(self, wanted, option="allow"):
        """Answers questions until a message is wanted, and returns it. The question itself can be wanted."""
        end = time.monotonic() + SOON
        while True:
            message = self.lines.get(timeout=max(0, end - time.monotonic()))
            if wanted(message):
                return message
            if message.get("method") == "session/request_permission":
                self.asked.append(message["params"]["toolCall"]["title"])
                self.send(id=message["id"], result={"outcome": {"outcome": "selected", "optionId": option}})

    def request(self, method, params, option="allow"):
        number = self.begin(method, params)
        answer = self.until(lambda message: message.get("id") == number and "method" not in message, option)
        assert "error" not in answer, answer
        return answer["result"]

    def prompt(self, session, text, option="allow"):
        return self.request("session/prompt", said(session, text), option)["stopReason"]

    def kill(self):
        self.process.kill()
        self.process.wait()


def said(session, text):
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}


def update(message):
    return message.get("params", {}).get("update", {})


def points(phase):
    """The moments of a phase: the question, the running tool, the text of the model before it."""
    title = {"test": "sh test.sh", "read": "Read add.sh", "edit": "Edit add.sh", "again": "sh test.sh"}[phase]
    announced = lambda message: update(message).get("sessionUpdate") == "tool_call" and update(message)["title"] == title
    yield "announced", announced
    if phase != "read":
        yield "asked", lambda message: (message.get("method") == "session/request_permission"
                                        and message["params"]["toolCall"]["title"] == title)
    yield "running", lambda message: update(message).get("status") == "in_progress"


class Case:
    def __init__(self, agent, api, port):
        self.folder = tempfile.mkdtemp()
        self.workspace = os.path.join(self.folder, "project")
        os.mkdir(self.workspace)
        for name, text in ("add.sh", BROKEN), ("test.sh", TEST):
            with open(os.path.join(self.workspace, name), "w") as file:
                file.write(text)
        config = os.path.join(self.folder, "config.toml")
        url = {"anthropic": "/v1", "gemini": "/v1beta"}.get(api, "/v1")
        with open(config, "w") as file:
            file.write(f'[[models]]\nname = "fake"\napi = "{api}"\nmodel = "fake"\nkey_env = "FAKE_KEY"\n'
                       f'url = "http://127.0.0.1:{port}{url}"\n')
        self.command = [agent, "--config", config]

    def start(self):
        return Agent(self.command, self.folder, self.workspace)

    def session(self, agent):
        return agent.request("session/new", {"cwd": self.workspace, "mcpServers": []})["sessionId"]

    def text(self):
        with open(os.path.join(self.workspace, "add.sh")) as file:
            return file.read()

    def end(self, agent):
        agent.kill()
        shutil.rmtree(self.folder)


def whole(case):
    agent = case.start()
    session = case.session(agent)
    assert agent.prompt(session, "Mend add.sh.") == "end_turn"
    assert agent.asked == ["sh test.sh", "Edit add.sh", "sh test.sh"], agent.asked
    assert case.text() == MENDED
    case.end(agent)


def refused(case):
    agent = case.start()
    session = case.session(agent)
    number = agent.begin("session/prompt", said(session, "Mend add.sh."))
    edit = agent.until(lambda message: message.get("method") == "session/request_permission"
                       and message["params"]["toolCall"]["title"] == "Edit add.sh")
    agent.send(id=edit["id"], result={"outcome": {"outcome": "selected", "optionId": "reject"}})
    answer = agent.until(lambda message: message.get("id") == number and "method" not in message)
    assert answer["result"]["stopReason"] == "end_turn" and case.text() == BROKEN, answer
    case.end(agent)


def interrupted(case, phase, wanted, kills):
    agent = case.start()
    session = case.session(agent)
    number = agent.begin("session/prompt", said(session, "Mend add.sh."))
    # The second test is the one after the edit.
    skip = [phase == "again"]

    def reached(message):
        if skip[0]:
            skip[0] = not (update(message).get("status") == "completed" and case.text() == MENDED)
            return False
        return wanted(message)

    agent.until(reached)
    if kills:
        agent.kill()
        agent = case.start()
        agent.request("session/load", {"sessionId": session, "cwd": case.workspace, "mcpServers": []})
    else:
        agent.send(method="session/cancel", params={"sessionId": session})
        began = time.monotonic()
        answer = agent.until(lambda message: message.get("id") == number and "method" not in message)
        took = time.monotonic() - began
        assert answer["result"]["stopReason"] == "cancelled", answer
        assert took < 1, f"the cancellation took {took:.2f} s"
    assert agent.prompt(session, "Go on.") == "end_turn"
    assert case.text() == MENDED, case.text()
    case.end(agent)


def main():
    folder, agent, *apis = sys.argv[1:]
    agent = os.path.abspath(agent)
    sys.path.insert(0, folder)
    import fake_llm
    fake_llm.plan = lambda *arguments: plan(fake_llm, *arguments)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    fake_llm.start(port, "/")
    failed = 0
    for api in apis or ["openai", "anthropic", "openai-responses", "gemini"]:
        cases = [("the whole repair", whole, ()), ("a refused edit", refused, ())]
        for phase in PHASES:
            for name, wanted in points(phase):
                for how in "cancel", "kill -9":
                    cases.append((f"{how} when `{phase}` is {name}", interrupted, (phase, wanted, how != "cancel")))
        for name, run, arguments in cases:
            try:
                run(Case(agent, api, port), *arguments)
                print(f"{api}: {name}: ok", flush=True)
            except Exception as error:
                failed += 1
                print(f"{api}: {name}: FAILED: {error!r}", flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
