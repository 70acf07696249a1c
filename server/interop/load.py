#!/usr/bin/env python3
"""Loads `acp-server serve` with bad clients, and measures a good one meanwhile.

Usage: load.py SERVER-BINARY [STREAMS]      (10,000 streams; needs as many open files: ulimit -n)
Needs the package h2 of PyPI; load.sh installs it.
"""

import asyncio
import json
import functools
import multiprocessing
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import h2.config
import h2.connection

TOKEN = "a-token-for-the-load"
READ_ONLY = "a-read-only-token-for-the-load"
TOKENS = 50
ROUNDS = 300


class Server:
    async def start(self, binary, *options):
        self.folder = tempfile.TemporaryDirectory()
        tokens, read_only = (os.path.join(self.folder.name, name) for name in ("tokens", "read-only"))
        with open(os.open(read_only, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(READ_ONLY)
        env = {**os.environ, "XDG_RUNTIME_DIR": self.folder.name, "ACP_SERVER_TOKEN": TOKEN}
        add = [binary, "tokens", "add", "--tokens", tokens]
        self.tokens = [subprocess.run([*add, f"user-{number}"], env=env, check=True, capture_output=True,
                                      text=True).stdout.split()[-1] for number in range(TOKENS)]
        self.process = await asyncio.create_subprocess_exec(
            binary, "serve", "--port", "0", "--store", "memory", "--read-only-token-file", read_only,
            "--tokens", tokens, *options, env=env, stderr=asyncio.subprocess.PIPE)
        while line := await self.process.stderr.readline():
            if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)/", line.decode()):
                self.port = int(found[1])
                asyncio.create_task(self.process.stderr.read())
                return
        raise SystemExit("the server did not start")

    def status(self, name):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(rf"{name}:\s+(\d+)", status.read())[1])

    def memory(self):
        return self.status("VmRSS") / 1024

    def cpu(self):
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def stop(self):
        self.process.send_signal(signal.SIGTERM)
        await self.process.wait()
        self.folder.cleanup()


def head(method, target, token=TOKEN, **headers):
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def read_head(reader):
    text = await reader.readuntil(b"\r\n\r\n")
    status = int(text.split(b" ", 2)[1])
    headers = dict(line.split(b": ", 1) for line in text.split(b"\r\n")[1:] if b": " in line)
    return status, {name.lower(): value for name, value in headers.items()}


class Good:
    """A client that behaves well: one socket for its posts, two for its streams."""

    async def connect(self, port):
        self.port, self.next, self.connection = port, 1, None
        self.posts = await asyncio.open_connection("127.0.0.1", port)
        body, headers = await self.post("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        assert body["result"]["protocolVersion"] == 1
        self.connection = headers[b"acp-connection-id"].decode()
        stream = await self.stream(None)
        await self.post("session/new", {"cwd": "/", "mcpServers": []})
        self.session = (await event(stream))["result"]["sessionId"]
        self.updates = await self.stream(self.session)
        return self

    async def post(self, method, params):
        number, self.next = self.next, self.next + 1
        body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        headers = {"Content_Type": "application/json", "Content_Length": len(body)}
        if self.connection:
            headers["Acp_Connection_Id"] = self.connection
        reader, writer = self.posts
        writer.write(head("POST", "/acp", **headers) + body)
        status, answer = await read_head(reader)
        text = await reader.readexactly(int(answer.get(b"content-length", b"0")))
        assert status in (200, 202), (status, text)
        return (json.loads(text) if text else None), answer

    async def stream(self, session):
        headers = {"Accept": "text/event-stream", "Acp_Connection_Id": self.connection}
        if session:
            headers["Acp_Session_Id"] = session
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(head("GET", "/acp", **headers))
        status, _ = await read_head(reader)
        assert status == 200, status
        return reader, writer

    async def answered(self, words):
        """Prompts, and waits for the answer."""
        number = self.next
        prompt = [{"type": "text", "text": words}]
        await self.post("session/prompt", {"sessionId": self.session, "prompt": prompt})
        while (await event(self.updates)).get("id") != number:
            pass

    async def ping(self):
        """The time from a prompt to its answer, in milliseconds."""
        begin = time.perf_counter()
        await self.answered("ping")
        return (time.perf_counter() - begin) * 1000


async def event(stream):
    while True:
        line = await stream[0].readline()
        if not line:
            raise ConnectionError("the stream ended")
        if line.startswith(b"data: "):
            return json.loads(line[6:])


async def measure(name, server, good, note=lambda: ""):
    before, began = server.cpu(), time.perf_counter()
    times = sorted([await good.ping() for _ in range(ROUNDS)])
    cpu = (server.cpu() - before) / (time.perf_counter() - began) * 100
    p99 = times[int(len(times) * 0.99)]
    print(f"| {name} | {statistics.median(times):.2f} | {p99:.2f} | {server.memory():.0f} | {cpu:.0f} % | {note()} |",
          flush=True)


async def idle_streams(server, wanted):
    """Streams of sessions that nobody has begun, 1,000 for each connection."""
    streams = []
    while len(streams) < wanted:
        owner = await Good().connect(server.port)
        streams.append(owner.updates)
        for number in range(min(1000, wanted - len(streams))):
            streams.append(await owner.stream(f"sess_{len(streams)}_{number}"))
    return streams


async def slow_readers(server, count):
    """Clients that are sent a long answer and read nothing of it."""
    clients = [await Good().connect(server.port) for _ in range(count)]
    for client in clients:
        prompt = [{"type": "text", "text": "stream 20000"}]
        await client.post("session/prompt", {"sessionId": client.session, "prompt": prompt})
    return clients


def count(seen, what):
    seen[what] = seen.get(what, 0) + 1


async def slow_writers(port, seen):
    """500 requests whose body comes in single bytes."""
    async def write():
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(head("POST", "/acp", Content_Type="application/json", Content_Length=100000))
            while True:
                writer.write(b"x")
                await writer.drain()
                count(seen, "bytes")
                await asyncio.sleep(0.1)
        except ConnectionError:
            count(seen, "cut")
    await asyncio.gather(*(write() for _ in range(500)))


async def header_flood(port, seen):
    """Requests with more headers than the server permits, one after the other."""
    headers = "".join(f"X-{number}: {'a' * 200}\r\n" for number in range(150))
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode())
            status, _ = await read_head(reader)
            count(seen, f"status {status}")
            writer.close()
        except (ConnectionError, asyncio.IncompleteReadError):
            count(seen, "cut")


async def rapid_reset(port, seen):
    """HTTP/2 streams that are opened and reset at once (CVE-2023-44487)."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
            http.initiate_connection()
            count(seen, "connections")
            for number in range(1, 200000, 2):
                http.send_headers(number, [(":method", "GET"), (":path", "/acp"), (":scheme", "http"),
                                           (":authority", "localhost"), ("authorization", "Bearer " + TOKEN)])
                http.reset_stream(number)
                count(seen, "resets")
                if number % 100 == 1:
                    writer.write(http.data_to_send())
                    await writer.drain()
                    if reader.at_eof():
                        break
            writer.close()
        except (ConnectionError, h2.exceptions.ProtocolError):
            count(seen, "ended by the server")


async def readers(port, seen, session):
    """1,980 streams of events and 20 readers of a whole session, with a read-only token."""
    async def read(target):
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(head("GET", target, READ_ONLY, Connection="close"))
                status, _ = await read_head(reader)
                count(seen, f"status {status}")
                while await reader.read(1 << 16):
                    pass
                writer.close()
            except (ConnectionError, asyncio.IncompleteReadError):
                count(seen, "cut")
            await asyncio.sleep(1)
    streams = (read(f"/session/{session}/events") for _ in range(1980))
    await asyncio.gather(*streams, *(read(f"/sessions/{session}") for _ in range(20)))


async def large_bodies(port, seen):
    """500 requests at a time with bodies of 50 MB, half of them without a length."""
    async def send(headers, piece):
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(head("POST", "/acp", Content_Type="application/json", **headers))
                answer = asyncio.create_task(read_head(reader))
                # That it failed is counted below, or by the write that fails first.
                answer.add_done_callback(lambda done: done.cancelled() or done.exception())
                for _ in range(50_000_000 >> 16):
                    if answer.done():
                        break
                    writer.write(piece)
                    await writer.drain()
                status, _ = await answer
                count(seen, f"status {status}")
                writer.close()
            except (ConnectionError, asyncio.IncompleteReadError):
                count(seen, "cut")
            await asyncio.sleep(0.1)
    body = b" " * (1 << 16)
    chunk = b"10000\r\n" + body + b"\r\n"
    announced = (send({"Content_Length": 50_000_000}, body) for _ in range(250))
    await asyncio.gather(*announced, *(send({"Transfer_Encoding": "chunked"}, chunk) for _ in range(250)))


async def half_messages(port, seen):
    """200 WebSockets that send half of a message of 15 MiB."""
    size = 15 << 20
    async def send():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(head("GET", "/acp", Connection="Upgrade", Upgrade="websocket", Sec_WebSocket_Version=13,
                              Sec_WebSocket_Key="dGhlIHNhbXBsZSBub25jZQ=="))
            status, _ = await read_head(reader)
            count(seen, f"status {status}")
            writer.write(b"\x81\xff" + size.to_bytes(8, "big") + bytes(4))
            for _ in range(size >> 17):
                writer.write(b" " * (1 << 16))
                await writer.drain()
            count(seen, "halves")
            await reader.read()
            count(seen, "closed")
        except (ConnectionError, asyncio.IncompleteReadError):
            count(seen, "cut")
    await asyncio.gather(*(send() for _ in range(200)))
    await asyncio.Event().wait()


async def flood(port, seen, tokens):
    """1,000 requests a second with each of the tokens, as far as this program can."""
    async def send(token):
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                async def read():
                    while text := await reader.read(1 << 16):
                        for status in re.findall(rb"HTTP/1.1 (\d+)", text):
                            count(seen, f"status {int(status)}")
                reading = asyncio.create_task(read())
                while not reading.done():
                    writer.write(head("GET", "/info", token) * 100)
                    await writer.drain()
                    await asyncio.sleep(0.1)
            except ConnectionError:
                count(seen, "cut")
    await asyncio.gather(*(send(token) for token in tokens))


def attack(kind, port, stop, seen):
    """Runs in a process of its own, so that it does not slow the good client down."""
    async def run():
        counts = {}
        task = asyncio.create_task(kind(port, counts))
        while not stop.is_set():
            await asyncio.sleep(0.1)
        task.cancel()
        seen.put(counts)
    asyncio.run(run())


async def during(name, server, good, kind, processes):
    stop, seen = multiprocessing.Event(), multiprocessing.Queue()
    workers = [multiprocessing.Process(target=attack, args=(kind, server.port, stop, seen)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    await asyncio.sleep(2)
    total = {}
    def note():
        stop.set()
        for _ in workers:
            for what, times in seen.get(timeout=10).items():
                total[what] = total.get(what, 0) + times
        return ", ".join(f"{times:,} {what}" for what, times in total.items())
    await measure(name, server, good, note)
    for worker in workers:
        worker.join(10)


async def a_minute(good):
    for _ in range(60):
        # The server closes a connection without requests sooner.
        await good.ping()
        await asyncio.sleep(1)


async def main():
    binary, wanted = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9900
    server = Server()
    await server.start(binary, "--requests-per-second", "0")
    good = await Good().connect(server.port)
    print("| load | ping p50 (ms) | p99 (ms) | memory (MiB) | CPU | |\n|---|---|---|---|---|---|")
    await measure("none", server, good)
    streams = await idle_streams(server, wanted)
    await measure(f"{len(streams):,} idle streams", server, good)
    for _, writer in streams:
        writer.close()
    await asyncio.sleep(2)
    await measure("after these are closed", server, good)
    await a_minute(good)
    await measure("a minute after", server, good)
    await during("header floods", server, good, header_flood, 2)
    await during("HTTP/2 rapid reset", server, good, rapid_reset, 1)
    await during("500 slow writers", server, good, slow_writers, 1)
    stopped = await slow_readers(server, 100)
    await asyncio.sleep(5)
    await measure("100 slow readers of 20,000 updates", server, good,
                  lambda: "2,000,000 updates in the store in memory")
    for client in stopped:
        for _, writer in (client.posts, client.updates):
            writer.close()
    await server.stop()

    server = Server()
    await server.start(binary)
    good = await Good().connect(server.port)
    await measure("none, another server with the default rates", server, good)
    author = await Good().connect(server.port)
    await author.answered("stream 300000")
    await measure("a session of 300,000 events", server, good)
    await during("2,000 readers of a read-only token", server, good,
                 functools.partial(readers, session=author.session), 1)
    await during("500 bodies of 50 MB at a time", server, good, large_bodies, 1)
    await during("200 halves of 15 MiB over WebSocket", server, good, half_messages, 1)
    await during("requests with 50 tokens", server, good, functools.partial(flood, tokens=server.tokens), 1)
    await a_minute(good)
    await measure("a minute after", server, good)
    await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
