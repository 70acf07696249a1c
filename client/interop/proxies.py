#!/usr/bin/env python3
"""Runs real agents behind proxies, started as an editor starts them, and prints what was shown.

Usage: proxies.py FOLDER ACP EDITOR_TOOLS [AGENT...]

FOLDER is that of real_agents.py, EDITOR_TOOLS the example of acp-proxy. Each agent (opencode and codex-acp without
names) has the proxies policy, audit and tools, and a program whose tool is in its own process. Fails if a tool was not
called, a refused command has run, or the audit lacks it.
"""
import json, pathlib, subprocess, sys, tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from real_agents import Place, agents

# The model calls the tools of this script's proxies, too. Codex has tools of MCP in groups.
MODEL = """
import json, sys, threading, types
sys.path.insert(0, {folder!r})
import fake_llm
fake_llm.KINDS["COUNT_LINES"] = ".*count_lines$"
fake_llm.KINDS["WHERE"] = ".*where$"
plain = fake_llm.tools_of

def tools_of(kind, body):
    groups = [group for group in body.get("tools") or [] if group.get("type") == "namespace"]
    grouped = [(group["name"] + "/" + tool["name"], tool.get("parameters") or {{}}, tool)
               for group in groups for tool in group["tools"]]
    return plain(kind, body) + grouped

def named(value):
    if isinstance(value, list):
        return [named(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "function_call" and "/" in value["name"]:
        group, name = value["name"].split("/")
        return {{**value, "namespace": group, "name": name}}
    return {{key: named(item) for key, item in value.items()}}

fake_llm.tools_of = tools_of
dumps = lambda value, **options: json.dumps(named(value), **options)
fake_llm.json = types.SimpleNamespace(loads=json.loads, dumps=dumps)
fake_llm.start(int(sys.argv[1]), sys.argv[2])
threading.Event().wait()
"""

RULES = """
[[rule]]
effect = "deny"
name = "no-echo"
command = ["echo", "from-fake-llm"]
"""


def server():
    """An MCP server with one tool, on standard input and output."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        if request["method"] == "initialize":
            result = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "places", "version": "1"}}
        elif request["method"] == "tools/list":
            schema = {"type": "object", "properties": {}}
            result = {"tools": [{"name": "where", "description": "Says where it is", "inputSchema": schema}]}
        elif request["method"] == "tools/call":
            result = {"content": [{"type": "text", "text": "in a server"}]}
        else:
            result = {}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


def check(place, acp, editor_tools, scratch):
    rules, audit, servers = (scratch / place.name / name for name in ("rules.toml", "audit.jsonl", "servers.json"))
    rules.write_text(RULES)
    place_server = {"command": sys.executable, "args": ["-B", str(pathlib.Path(__file__).resolve()), "--server"]}
    servers.write_text(json.dumps({"mcpServers": {"places": place_server}}))
    settings = {"agent_servers": {"Guarded": {"command": str(acp), "args": [
        "conduct", f"policy {rules}", f"audit {audit}", f"tools {servers}", str(editor_tools), "--", *place.command]}}}
    print(f"### {place.name}\n\n```json\n{place.shown(json.dumps(settings, indent=1))}\n```\n")
    agent = settings["agent_servers"]["Guarded"]
    for prompt, expected in (("COUNT_LINES", "1\n"), ("WHERE", "in a server"), ("TOOL_SHELL", "")):
        command = [acp, "run", "--approve-all", prompt, "--", agent["command"], *agent["args"]]
        ended = subprocess.run(command, cwd=place.workspace, env=place.env, timeout=180, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        print(f"`acp run --approve-all {prompt}`, exit code {ended.returncode}\n\n```text\n{place.shown(ended.stdout)}\n```\n")
        assert expected in ended.stdout, f"{prompt}: {expected!r} is missing"
    assert not (place.workspace / "shell_out.txt").exists(), "a command that is refused has run"
    assert "from-fake-llm" in audit.read_text(), f"the audit lacks the refused command: {audit.read_text()}"


def main():
    if sys.argv[1:] == ["--server"]:
        return server()
    folder, acp, editor_tools, *names = sys.argv[1:]
    folder, acp, editor_tools = (pathlib.Path(path).resolve() for path in (folder, acp, editor_tools))
    known = agents(folder, "1")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        for name in names or ["opencode", "codex-acp"]:
            place = Place(folder, name, known[name], scratch, ["-c", MODEL.format(folder=str(folder))])
            # The program of the bridge is in PATH where `acp` is installed.
            place.env["PATH"] = f"{acp.parent}:{place.env['PATH']}"
            try:
                check(place, acp, editor_tools, scratch)
            finally:
                place.model.kill()
    print("each tool was called, and no refused command has run", file=sys.stderr)


main()
