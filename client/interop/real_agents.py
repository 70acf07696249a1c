#!/usr/bin/env python3
"""Runs `acp` with real agents against a mock model on loopback, and prints what it shows as Markdown.

Usage: real_agents.py FOLDER ACP [--protocol-version 2] [AGENT...]

FOLDER has agents.py (a table AGENTS: npm packages, command, environment, files of the home directory) and
fake_llm.py (the mock model: `fake_llm.py PORT WORKSPACE`). Needs npm and the network once; what it installs is
kept in $CACHE, by default ~/.cache/acp-real-agents. Fails if a scenario ends with another exit code than expected,
or a file that was refused was written.
"""
import json, os, pathlib, pty, re, shutil, signal, socket, subprocess, sys, tempfile, time

CACHE = pathlib.Path(os.environ.get("CACHE", pathlib.Path.home() / ".cache/acp-real-agents"))
WRITTEN = "shell_out.txt"  # by the tool call that the mock model asks for

# The adapters of the protocol's organization, which speak both versions.
BOTH_VERSIONS = {
    "codex-acp": {
        "npm": ["@agentclientprotocol/codex-acp@2.6.0"],
        "cmd": ["node", "{bin}/node_modules/@agentclientprotocol/codex-acp/dist/index.js"],
        "env": {"CODEX_API_KEY": "none", "FAKE_KEY": "none", "NO_BROWSER": "1", "MODEL_PROVIDER": "fake",
                "INITIAL_AGENT_MODE": "read-only"},
    },
    "claude-agent-acp": {
        "npm": ["@agentclientprotocol/claude-agent-acp@0.101.0", "node@22"],
        "cmd": ["{bin}/node_modules/node/bin/node",
                "{bin}/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js"],
        "env": {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": "http://127.0.0.1:{port}", "IS_SANDBOX": "1",
                "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"},
        "files": {},
    },
}


def agents(folder, version):
    """The agents that speak a version of the protocol, by name: how each is installed, started and configured."""
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    from agents import AGENTS
    codex = {"files": AGENTS["codex-acp-zed"]["files"]}
    both = {name: {**codex, **agent} for name, agent in BOTH_VERSIONS.items()}
    return both if version == "2" else {**AGENTS, **both}


def filled(value, words):
    if isinstance(value, str):
        return re.sub(r"\{(bin|port|home|ws)\}", lambda match: str(words[match.group(1)]), value)
    if isinstance(value, dict):
        return {key: filled(item, words) for key, item in value.items()}
    return [filled(item, words) for item in value] if isinstance(value, list) else value


class Place:
    """An installed agent with a home and a workspace of its own, and the model that it uses: a program in Python, by
    default that of the folder, with port and workspace as its arguments."""

    def __init__(self, folder, name, agent, scratch, model=None):
        self.name = name
        words = {"bin": CACHE / name, "home": scratch / name / "home", "ws": scratch / name / "workspace"}
        with socket.create_server(("127.0.0.1", 0)) as free:
            words["port"] = free.getsockname()[1]
        for key in ("bin", "home", "ws"):
            words[key].mkdir(parents=True, exist_ok=True)
        (words["ws"] / "hello.txt").write_text("Hello, file.\n")
        if not (words["bin"] / "node_modules").exists():
            print(f"installing {name}", file=sys.stderr)
            command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", words["bin"]]
            subprocess.run([*command, *agent["npm"]], check=True)
        for path in filled(agent.get("chmod", []), words):
            os.chmod(path, 0o755)
        for path, content in filled(agent["files"], words).items():
            file = words["home"] / path
            file.parent.mkdir(parents=True, exist_ok=True)
            text = content if isinstance(content, str) else json.dumps(content)
            # Codex asks before it leaves its sandbox. With its other policy it refuses by itself.
            text = text.replace('"untrusted"\nsandbox', '"on-request"\nsandbox').replace("danger-full-access", "read-only")
            file.write_text(text)
        self.workspace = words["ws"]
        self.command = filled(agent["cmd"], words)
        self.env = {**os.environ, **filled(agent["env"], words), "HOME": str(words["home"]),
                    "XDG_DATA_HOME": str(words["home"] / "data"), "NO_COLOR": "1"}
        self.model = subprocess.Popen([sys.executable, "-B", *(model or [folder / "fake_llm.py"]), str(words["port"]), str(words["ws"])],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", words["port"])).close()
                break
            except OSError:
                time.sleep(0.1)

    def shown(self, text):
        """Output as it is printed here: no paths of this machine, no control characters, not too long."""
        paths = [(word, self.name) for word in self.command if "/" in word]
        for path, name in (*paths, (str(self.workspace), "/workspace"), (self.env["HOME"], "/home/user")):
            text = text.replace(path, name)
        text = re.sub(r"(notice \(warning\): )?Model metadata for [^.]*\.[^.]*\.\n?", "", text)
        text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\x07]", "", text)
        lines = [line[:160] + ("…" if len(line) > 160 else "") for line in text.splitlines()]
        return "\n".join(lines if len(lines) <= 30 else lines[:14] + ["[…]"] + lines[-14:])


def alone(command, place, timeout=90):
    """Runs a command and returns its output, both streams together, and its exit code."""
    ended = subprocess.run(command, cwd=place.workspace, env=place.env, timeout=timeout, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return ended.stdout.decode(), ended.returncode


def on_terminal(command, place, question, answer, timeout=90):
    """Runs a command on a terminal, and acts when it shows `question`."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(place.workspace)
        os.execvpe(command[0], command, place.env)
    output, acted, limit = b"", False, time.monotonic() + timeout
    while time.monotonic() < limit:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
        if not acted and question in output:
            acted = True
            answer(child, terminal)
    else:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(terminal)
    return output.decode("utf-8", "replace"), code


def interrupt(child, _):
    os.kill(child, signal.SIGINT)


def press(key):
    return lambda _, terminal: os.write(terminal, key)


def scenarios(acp, version, place):
    """Heading, options, prompt, expected exit codes, how it is run, whether the tool may write."""
    run = [acp, "run"] + (["--protocol-version", version] if version != "1" else [])
    ask = b"Number (1-"
    yield "Text", run + ["HELLO, please."], {0}, alone, None
    yield "Thinking", run + ["THINK about it."], {0}, alone, None
    yield "A tool call, allowed", run + ["--approve-all", "TOOL_SHELL please"], {0}, alone, True
    yield "A tool call, allowed, in a sandbox", run + ["--sandbox", "--approve-all", "TOOL_SHELL please"], {0}, alone, True
    yield "A tool call, refused", run + ["--deny-all", "TOOL_SHELL please"], {0, 130}, alone, False
    yield "A tool call, allowed on a terminal by one key", run + ["TOOL_SHELL please"], {0}, (ask, press(b"y\n")), True
    yield "Ctrl-C in mid-turn", run + ["SLOW please"], {130}, (b"chunk", interrupt), None
    yield "Ctrl-C while a question is open", run + ["TOOL_SHELL please"], {130}, (ask, interrupt), False
    yield "A model that fails", run + ["FAIL now"], {0, 1}, alone, None
    yield "JSON", run + ["--format", "json", "HELLO, please."], {0}, alone, None
    yield "Sessions", [acp, "sessions", "list"], {0, 1}, alone, None
    yield "A conversation that goes on in a new process", run + ["--session", "notes", "HELLO, please."], {0}, alone, None
    yield None, run + ["--session", "notes", "HELLO, again."], {0}, alone, None


def main():
    words, version = sys.argv[1:], "1"
    if "--protocol-version" in words:
        at = words.index("--protocol-version")
        version = words[at + 1]
        del words[at:at + 2]
    folder, acp = pathlib.Path(words[0]).resolve(), str(pathlib.Path(words[1]).resolve())
    table = agents(folder, version)
    wrong = 0
    scratch = pathlib.Path(tempfile.mkdtemp())
    for name in words[2:] or table:
        place = Place(folder, name, table[name], scratch)
        print(f"## {name}\n")
        try:
            for heading, command, expected, how, writes in scenarios(acp, version, place):
                written = place.workspace / WRITTEN
                written.unlink(missing_ok=True)
                whole = command + ["--"] + place.command
                output, code = alone(whole, place) if how is alone else on_terminal(whole, place, *how)
                if heading:
                    print(f"{heading}:\n")
                words = " ".join(f"'{word}'" if " " in word else word for word in ["acp", *whole[1:]])
                print(f"```console\n$ {place.shown(words)}\n{place.shown(output)}\n[exit {code}]\n```\n")
                if code not in expected:
                    wrong += 1
                    print(f"{name}: {heading}: exit {code}, expected {sorted(expected)}", file=sys.stderr)
                if writes is not None and written.exists() != writes:
                    wrong += 1
                    print(f"{name}: {heading}: {WRITTEN} exists: {written.exists()}", file=sys.stderr)
        finally:
            place.model.kill()
    shutil.rmtree(scratch, ignore_errors=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
