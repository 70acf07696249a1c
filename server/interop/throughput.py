#!/usr/bin/env python3
"""CPU of servers for the same work, in one run: pings, a stream of updates, and many sessions.

Usage: throughput.py ACP-SERVER [NAME=COMMAND]...   (a command prints its URL; throughput.sh starts this)
Needs the package websockets of PyPI. The client does the same for each server, so its speed does not matter.
All servers are measured in turn, ROUNDS times (3), and the median counts.
"""

import asyncio
import json
import os
import re
import shlex
import statistics
import sys
import tempfile
import time

from websockets.asyncio.client import connect

from load import TOKEN, event, head, read_head

PINGS, UPDATES, SESSIONS = 5000, 200_000, 1000
ROUNDS = int(os.environ.get("ROUNDS", "3"))
WORK = ("ping", "update", "session")


class Process:
    async def start(self, command, stdio=False):
        self.folder = tempfile.TemporaryDirectory()
        env = {**os.environ, "XDG_RUNTIME_DIR": self.folder.name, "ACP_SERVER_TOKEN": TOKEN}
        pipe = asyncio.subprocess.PIPE
        self.child = await asyncio.create_subprocess_exec(
            *command, env=env, stdin=pipe, stdout=pipe, stderr=None if stdio else asyncio.subprocess.STDOUT,
            limit=1 << 26)
        if stdio:
            return
        while line := await self.child.stdout.readline():
            if found := re.search(r"http://(127\.0\.0\.1:\d+)/", line.decode()):
                self.address = found[1]
                asyncio.create_task(self.child.stdout.read())
                return
        raise SystemExit(f"{command[0]} did not start")

    def cpu(self):
        with open(f"/proc/{self.child.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def stop(self):
        self.child.kill()
        await self.child.wait()
        self.folder.cleanup()


class Peer:
    next = 1

    async def call(self, method, params, session=None):
        number, self.next = self.next, self.next + 1
        await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, session)
        updates = 0
        while True:
            message = await self.receive(session)
            if message.get("id") == number and "method" not in message:
                assert "error" not in message, message
                return message["result"], updates
            updates += 1

    async def prompt(self, session, text):
        blocks = [{"type": "text", "text": text}]
        return await self.call("session/prompt", {"sessionId": session, "prompt": blocks}, session)

    async def hello(self):
        await self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})

    async def new_session(self):
        return (await self.call("session/new", {"cwd": "/", "mcpServers": []}))[0]["sessionId"]


class WebSocket(Peer):
    async def open(self, process):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        self.socket = await connect(f"ws://{process.address}/acp", additional_headers=headers, max_size=None,
                                    compression=None, ping_interval=None)

    async def send(self, message, _):
        await self.socket.send(json.dumps(message))

    async def receive(self, _):
        return json.loads(await self.socket.recv())


class Stdio(Peer):
    async def open(self, process):
        self.child = process.child

    async def send(self, message, _):
        self.child.stdin.write(json.dumps(message).encode() + b"\n")

    async def receive(self, _):
        return json.loads(await self.child.stdout.readline())


class Sse(Peer):
    connection = None

    async def open(self, process):
        self.address = process.address.split(":")
        self.posts = await asyncio.open_connection(*self.address)
        self.streams = {}

    async def send(self, message, session):
        body = json.dumps(message).encode()
        headers = {"Content_Type": "application/json", "Content_Length": len(body), "Accept": "application/json"}
        if self.connection:
            headers["Acp_Connection_Id"] = self.connection
            if session not in self.streams:
                self.streams[session] = await self.stream(session)
        if session:
            headers["Acp_Session_Id"] = session
        reader, writer = self.posts
        writer.write(head("POST", "/acp", **headers) + body)
        status, answer = await read_head(reader)
        text = b""
        if answer.get(b"transfer-encoding") == b"chunked":
            while size := int(await reader.readline(), 16):
                text += (await reader.readexactly(size + 2))[:-2]
            await reader.readline()
        else:
            text = await reader.readexactly(int(answer.get(b"content-length", b"0")))
        assert status in (200, 202), (status, text)
        self.body = json.loads(text) if text else None
        if not self.connection:
            self.connection = answer[b"acp-connection-id"].decode()

    async def stream(self, session):
        headers = {"Accept": "text/event-stream", "Acp_Connection_Id": self.connection}
        if session:
            headers["Acp_Session_Id"] = session
        reader, writer = await asyncio.open_connection(*self.address, limit=1 << 26)
        writer.write(head("GET", "/acp", **headers))
        assert (await read_head(reader))[0] == 200
        return reader, writer

    async def receive(self, session):
        if self.body:
            body, self.body = self.body, None
            return body
        return await event(self.streams[session])


async def measure(command, kind, stdio=False):
    """Returns CPU and time for each unit of each work, in µs."""
    process = Process()
    await process.start(command, stdio)
    peer = kind()
    await peer.open(process)
    await peer.hello()
    session = await peer.new_session()
    costs = {}

    async def work(name, units, job):
        cpu, began = process.cpu(), time.perf_counter()
        await job()
        elapsed = time.perf_counter() - began
        costs[name] = (process.cpu() - cpu) / units * 1e6, elapsed / units * 1e6

    async def pings():
        for _ in range(PINGS):
            await peer.prompt(session, "ping")

    async def stream():
        _, updates = await peer.prompt(session, f"stream {UPDATES}")
        assert updates >= UPDATES, updates

    async def sessions():
        for _ in range(SESSIONS):
            await peer.new_session()

    await work("ping", PINGS, pings)
    await work("update", UPDATES, stream)
    await work("session", SESSIONS, sessions)
    await process.stop()
    return costs


async def main():
    ours = sys.argv[1]
    serve = [ours, "serve", "--port", "0", "--store", "memory", "--requests-per-second", "0"]
    subjects = {
        ("acp-server", "stdio"): ([ours, "--store", "memory"], Stdio, True),
        ("acp-server", "WebSocket"): (serve, WebSocket),
        ("acp-server", "SSE"): (serve, Sse),
    }
    for other in sys.argv[2:]:
        name, command = other.split("=", 1)
        for over, kind in (("WebSocket", WebSocket), ("SSE", Sse)):
            subjects[name, over] = shlex.split(command), kind
    costs = {subject: [] for subject in subjects}
    for _ in range(ROUNDS):
        for subject, how in subjects.items():
            costs[subject].append(await measure(*how))
    medians = {subject: {work: [statistics.median(round[work][part] for round in rounds) for part in (0, 1)]
                         for work in WORK} for subject, rounds in costs.items()}

    print(f"µs of CPU of the server, and µs in all, for a ping of {PINGS:,} one after the other, an update of"
          f" {UPDATES:,} and a session of {SESSIONS:,}; medians of {ROUNDS} rounds\n")
    print("| | ping | | update | | session | |\n|---|---|---|---|---|---|---|")
    for (name, over), median in medians.items():
        cells = " | ".join(f"{cpu:.1f} | {elapsed:.1f}" for cpu, elapsed in median.values())
        print(f"| {name}, {over} | {cells} |")
    print("\nCPU of a server as a multiple of that of acp-server over the same transport\n")
    print("| | ping | update | session |\n|---|---|---|---|")
    for (name, over), median in medians.items():
        base = medians["acp-server", "stdio" if name == "acp-server" else over]
        ratios = " | ".join(f"{median[work][0] / base[work][0]:.1f}" for work in WORK)
        note = " (of stdio)" if name == "acp-server" else ""
        print(f"| {name}, {over}{note} | {ratios} |")


if __name__ == "__main__":
    asyncio.run(main())
