#!/usr/bin/env python3
"""Opens and closes 100 sessions with the official MCP servers in Python and TypeScript, then kills the agent.

Usage: mcp_servers.py AGENT-BINARY [SESSIONS]      (the example `tools` of acp-server-mcp, 100 sessions)
Each session has a server of the Python SDK and `server-everything`, which is on the TypeScript SDK. No process of a
server may be left after the sessions are closed, nor after the agent is killed by SIGKILL with sessions open.
"""

import asyncio
import json
import os
import pathlib
import platform
import subprocess
import sys
import time
import uuid

PYTHON_SDK = "2.3.0"
EVERYTHING = "2026.8.31"
AT_ONCE = 4  # sessions
OPEN = 8  # sessions when the agent is killed
GUARD = 120  # seconds; nothing takes this long
VARIABLE = "MCP_SERVERS_RUN"
SERVER = """
from mcp.server import MCPServer

server = MCPServer("python")


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


server.run()
"""


def install():
    """Returns the commands of both servers, which are installed once."""
    root = pathlib.Path(__file__).resolve().parents[2]
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / "interop"
    folder = target / f"mcp-servers-{PYTHON_SDK}-{EVERYTHING}"
    python, script = folder / "venv/bin/python", folder / "server.py"
    everything = folder / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    if not (folder / "ready").exists():
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, f"mcp=={PYTHON_SDK}"], check=True)
        package = f"@modelcontextprotocol/server-everything@{EVERYTHING}"
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder]
        subprocess.run([*npm, package], check=True)
        (folder / "ready").touch()
    script.write_text(SERVER)
    return [str(python), str(script)], ["node", str(everything), "stdio"]


def left(run):
    """Returns the processes of the servers of this run."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if f"{VARIABLE}={run}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            pass  # It has ended, or is another user's.
    return found


def none_left(run, seconds):
    """Waits until no process of this run is left; returns how long it took."""
    start = time.monotonic()
    while processes := left(run):
        assert time.monotonic() - start < seconds, f"left after {seconds} s: {processes}"
        time.sleep(0.05)
    return time.monotonic() - start


class Agent:
    """The agent, and this script as its client."""

    async def start(self, binary):
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(binary, stdin=pipe, stdout=pipe, limit=1 << 24)
        self.waiting, self.texts = {}, {}
        self.reader = asyncio.create_task(self.read())
        return self

    async def read(self):
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if message.get("method") == "session/update":
                params = message["params"]
                if params["update"]["sessionUpdate"] == "agent_message_chunk":
                    self.texts.setdefault(params["sessionId"], []).append(params["update"]["content"]["text"])
            elif "method" not in message:
                self.waiting.pop(message["id"]).set_result(message)

    async def call(self, method, params):
        identifier = str(uuid.uuid4())
        self.waiting[identifier] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
        waiting = self.waiting[identifier]
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        answer = await asyncio.wait_for(waiting, GUARD)
        assert "result" in answer, (method, answer)
        return answer["result"]

    async def say(self, session, text):
        self.texts.pop(session, None)
        prompt = [{"type": "text", "text": text}]
        await self.call("session/prompt", {"sessionId": session, "prompt": prompt})
        return "".join(self.texts.get(session, []))

    async def open(self, run, commands):
        env = [{"name": VARIABLE, "value": run}]
        servers = [
            {"name": name, "command": command[0], "args": command[1:], "env": env}
            for name, command in commands.items()
        ]
        opened = await self.call("session/new", {"cwd": os.getcwd(), "mcpServers": servers})
        session = opened["sessionId"]
        tools = (await self.say(session, "tools")).split()
        assert "python__add" in tools and "everything__echo" in tools, (tools, await self.say(session, "states"))
        added = await self.say(session, 'python__add {"a": 2, "b": 3}')
        assert added.startswith("5"), added
        echoed = await self.say(session, 'everything__echo {"message": "hello"}')
        assert echoed == "Echo: hello", echoed
        return session


async def main(binary, sessions):
    python, everything = install()
    commands = {"python": python, "everything": everything}
    run = uuid.uuid4().hex
    agent = await Agent().start(binary)
    initialize = {"protocolVersion": 1, "clientCapabilities": {}}
    initialized = await agent.call("initialize", initialize)
    assert initialized["agentCapabilities"]["mcpCapabilities"]["http"] is True, initialized
    places, start = asyncio.Semaphore(AT_ONCE), time.monotonic()

    async def use():
        async with places:
            session = await agent.open(run, commands)
            await agent.call("session/close", {"sessionId": session})

    await asyncio.gather(*(use() for _ in range(sessions)))
    took = time.monotonic() - start
    after = none_left(run, 10)
    print(f"{sessions} sessions with 2 servers each, 3 calls each, {AT_ONCE} at a time: {took:.0f} s")
    print(f"processes of servers after the last session was closed: none, after {after:.1f} s")
    for _ in range(OPEN):
        await agent.open(run, commands)
    running = len(left(run))
    assert running >= 2 * OPEN, running
    agent.process.kill()
    await agent.process.wait()
    agent.reader.cancel()
    took = none_left(run, 15)
    print(f"processes after kill -9 of the agent with {OPEN} sessions: {running} before, none after {took:.1f} s")
    versions = f"mcp {PYTHON_SDK} (PyPI), server-everything {EVERYTHING} (npm)"
    machine = f"{platform.system()} {platform.release()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{time.strftime('%Y-%m-%d')}, {versions}, {machine}")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 100))
