#!/usr/bin/env python3
"""CPU of servers for the same work, in one run: pings, a stream of updates, and many sessions.

Usage: throughput.py ACP-SERVER [OTHER-SERVER]     (each says `listening on http://…` on standard error)
Needs the package websockets of PyPI. The client does the same for each server, so its speed does not matter.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
import time

from websockets.asyncio.client import connect

from load import TOKEN, event, head, read_head

PINGS, UPDATES, SESSIONS = 5000, 200_000, 1000


class Process:
    async def start(self, command, stdio=False):
        self.folder = tempfile.TemporaryDirectory()
        env = {**os.environ, "XDG_RUNTIME_DIR": self.folder.name, "ACP_SERVER_TOKEN": TOKEN}
        pipe = asyncio.subprocess.PIPE
        self.child = await asyncio.create_subprocess_exec(
            *command, env=env, stdin=pipe, stdout=pipe, stderr=None if stdio else pipe, limit=1 << 26)
        if stdio:
            return
        while line := await self.child.stderr.readline():
            if found := re.search(r"listening on http://(127\.0\.0\.1:\d+)/", line.decode()):
                self.address = found[1]
                asyncio.create_task(self.child.stderr.read())
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


async def measure(name, command, kind, stdio=False):
    process = Process()
    await process.start(command, stdio)
    peer = kind()
    await peer.open(process)
    await peer.hello()
    session = await peer.new_session()
    row = [name]

    async def work(units, job):
        cpu, began = process.cpu(), time.perf_counter()
        await job()
        row.append(f"{(process.cpu() - cpu) / units * 1e6:.1f}")
        row.append(f"{(time.perf_counter() - began):.2f}")

    async def pings():
        for _ in range(PINGS):
            await peer.prompt(session, "ping")

    async def stream():
        _, updates = await peer.prompt(session, f"stream {UPDATES}")
        assert updates >= UPDATES, updates

    async def sessions():
        for _ in range(SESSIONS):
            await peer.new_session()

    await work(PINGS, pings)
    await work(UPDATES, stream)
    await work(SESSIONS, sessions)
    print("| " + " | ".join(row) + " |", flush=True)
    await process.stop()


async def main():
    ours = sys.argv[1]
    serve = [ours, "serve", "--port", "0", "--store", "memory", "--requests-per-second", "0"]
    print(f"CPU of the server in µs, and seconds in all: {PINGS:,} pings one after the other, {UPDATES:,} updates,"
          f" {SESSIONS:,} sessions\n")
    print("| | ping | s | update | s | session | s |\n|---|---|---|---|---|---|---|")
    await measure("acp-server, stdio", [ours, "--store", "memory"], Stdio, stdio=True)
    await measure("acp-server, WebSocket", serve, WebSocket)
    await measure("acp-server, SSE", serve, Sse)
    for other in sys.argv[2:]:
        await measure(f"{os.path.basename(other)}, WebSocket", [other], WebSocket)
        await measure(f"{os.path.basename(other)}, SSE", [other], Sse)


if __name__ == "__main__":
    asyncio.run(main())
