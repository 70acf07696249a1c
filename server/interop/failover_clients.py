"""Clients of nodes that go on at another node whenever their own is lost: a web socket, a stream of events, REST.

They speak the protocol by hand, so that no code of the project hides what a node has sent twice or left out.
"""

import asyncio
import base64
import json
import os
import struct

from nodes import TOKEN

LIMIT = 60


class Wrong(Exception):
    """A node has answered what it must not."""


class Lost(Exception):
    """The connection has ended, or was refused."""


async def opened(port):
    try:
        return await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port, limit=1 << 24), 2)
    except (OSError, TimeoutError) as error:
        raise Lost(error) from error


async def head(reader):
    """Reads status and headers of an answer."""
    try:
        text = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), LIMIT)
    except (asyncio.IncompleteReadError, OSError, TimeoutError) as error:
        raise Lost(error) from error
    lines = text.decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines[1:] if ": " in line)
    return int(lines[0].split()[1]), headers


async def request(port, method, path, body=None, headers=()):
    """Sends a request of REST; returns status, headers and body."""
    reader, writer = await opened(port)
    try:
        text = "" if body is None else json.dumps(body)
        lines = [f"{method} {path} HTTP/1.0", "Host: localhost", f"Authorization: Bearer {TOKEN}", "Connection: close"]
        lines += ["Content-Type: application/json", f"Content-Length: {len(text.encode())}", *headers]
        writer.write(("\r\n".join(lines) + "\r\n\r\n" + text).encode())
        status, found = await head(reader)
        try:
            answer = await asyncio.wait_for(reader.read(-1), LIMIT)
        except (OSError, TimeoutError) as error:
            raise Lost(error) from error
        if "content-length" in found and len(answer) < int(found["content-length"]):
            raise Lost("the answer was cut off")
        return status, found, answer.decode(errors="replace")
    except OSError as error:
        raise Lost(error) from error
    finally:
        writer.close()


class Socket:
    """A web socket that sends and receives messages of JSON-RPC."""

    def __init__(self, reader, writer):
        self.reader, self.writer, self.code = reader, writer, None

    @classmethod
    async def open(cls, port):
        reader, writer = await opened(port)
        key = base64.b64encode(os.urandom(16)).decode()
        lines = ["GET /acp HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}", "Upgrade: websocket"]
        lines += ["Connection: Upgrade", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        status, _ = await head(reader)
        if status != 101:
            writer.close()
            raise Lost(f"status {status}")
        return cls(reader, writer)

    def frame(self, opcode, data):
        mask = os.urandom(4)
        size = len(data)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size) if size < 65536 else b"\xff" + struct.pack(">Q", size)
        self.writer.write(bytes([0x80 | opcode]) + length + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(data)))

    def send(self, message):
        if self.writer.is_closing():
            raise Lost("closed")
        self.frame(1, json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def receive(self):
        text = b""
        try:
            while True:
                first, second = await self.reader.readexactly(2)
                size = second & 127
                if size > 125:
                    more = await self.reader.readexactly(2 if size == 126 else 8)
                    size = int.from_bytes(more)
                data = await self.reader.readexactly(size)
                opcode = first & 15
                if opcode == 8:
                    self.code = int.from_bytes(data[:2]) if data else None
                    raise Lost(f"closed with {self.code}")
                if opcode == 9:
                    self.frame(10, data)
                elif opcode < 3:
                    text += data
                    if first & 0x80:
                        return json.loads(text)
        except (asyncio.IncompleteReadError, OSError) as error:
            raise Lost(error) from error

    def cut(self):
        self.writer.transport.abort()


class Client:
    """A client of a session at a web socket: it reads all events, and sends prompts again by their keys."""

    def __init__(self, choose, session):
        self.choose, self.session = choose, session
        self.seen, self.last, self.faults = [], 0, []
        self.socket, self.answers, self.ids = None, {}, 0
        self.joined = asyncio.Event()
        self.connections, self.longest, self.error = 0, 0.0, None

    async def run(self):
        clock = asyncio.get_running_loop()
        lost = clock.time()
        while True:
            try:
                self.socket = await Socket.open(self.choose())
                reading = asyncio.create_task(self.read_all())
                try:
                    await self.call("initialize", {"protocolVersion": 1})
                    joined = {"sessionId": self.session, "sinceEventId": self.last}
                    await self.call("_acp-sdk/session/resume", joined)
                    self.connections += 1
                    self.longest = max(self.longest, clock.time() - lost)
                    self.joined.set()
                    await reading
                finally:
                    reading.cancel()
                    self.joined.clear()
                    self.socket.cut()
            except (Lost, TimeoutError) as error:
                self.error = error
                if self.joined.is_set() or lost is None:
                    lost = clock.time()
                await asyncio.sleep(0.05)
            else:
                lost = clock.time()

    def fail_all(self):
        for answer in self.answers.values():
            if not answer.done():
                answer.set_exception(Lost("the connection ended"))
                answer.exception()
        self.answers.clear()

    async def call(self, method, params):
        """Returns the response; raises `Lost` if it does not come or is an error of a node in trouble."""
        self.ids += 1
        answer = asyncio.get_running_loop().create_future()
        self.answers[self.ids] = answer
        self.socket.send({"id": self.ids, "method": method, "params": params})
        response = await asyncio.wait_for(answer, LIMIT)
        if method != "session/prompt" and "error" in response:
            raise Lost(response["error"])
        return response

    async def read_all(self):
        try:
            await self.read()
        finally:
            # Whoever waits for a response on this connection waits in vain.
            self.fail_all()

    async def read(self):
        while True:
            message = await self.socket.receive()
            if "method" not in message:
                answer = self.answers.pop(message["id"], None)
                if answer is not None and not answer.done():
                    answer.set_result(message)
            elif message["method"] == "session/update":
                self.update(message["params"])
            elif "id" in message:
                self.socket.send({"id": message["id"], "error": {"code": -32601, "message": "no"}})

    def update(self, params):
        if params["sessionId"] != self.session:
            self.faults.append(f"an update of {params['sessionId']}")
        meta = params.get("_meta") or {}
        number = (meta.get("acp-sdk") or {}).get("eventId")
        if number is None:
            return
        if number <= self.last:
            self.faults.append(f"event {number} after {self.last}")
        self.last = max(self.last, number)
        if params["update"]["sessionUpdate"] == "agent_message_chunk":
            self.seen.append((number, params["update"]["content"]["text"]))

    async def prompt(self, key, text):
        """Has a prompt run once; returns its end."""
        while True:
            await self.joined.wait()
            params = {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]}
            params["_meta"] = {"acp-sdk": {"idempotencyKey": key}}
            try:
                response = await self.call("session/prompt", params)
            except (Lost, TimeoutError):
                await asyncio.sleep(0.05)
                continue
            if "result" in response:
                return response["result"]["stopReason"]
            message = self.error = response["error"]["message"]
            if "during the turn" in message:
                return "interrupted"
            # Not run, or not known: the key has it run once.
            await asyncio.sleep(0.2)

    def cut(self):
        if self.socket is not None:
            self.socket.cut()


class Stream:
    """A reader of `GET /session/ID/events`."""

    def __init__(self, choose, session):
        self.choose, self.session = choose, session
        self.seen, self.last, self.faults, self.writer = [], 0, [], None

    async def run(self):
        while True:
            try:
                await self.read()
            except (Lost, OSError, asyncio.IncompleteReadError):
                pass
            await asyncio.sleep(0.05)

    async def read(self):
        reader, self.writer = await opened(self.choose())
        try:
            lines = [f"GET /session/{self.session}/events HTTP/1.0", "Host: localhost", f"Authorization: Bearer {TOKEN}"]
            lines += ["Accept: text/event-stream", "Connection: close", f"Last-Event-ID: {self.last}"]
            self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
            status, _ = await head(reader)
            if status != 200:
                raise Lost(f"status {status}")
            event = {}
            while line := await reader.readline():
                line = line.decode().rstrip("\r\n")
                name, _, value = line.partition(": ")
                if line:
                    # Without chunks, because it is HTTP/1.0.
                    event[name] = value
                elif "id" in event:
                    self.event(int(event["id"].split(".")[0]), event.get("event"), event.get("data", ""))
                    event = {}
        finally:
            self.writer.close()

    def event(self, number, kind, data):
        if number <= self.last:
            self.faults.append(f"event {number} after {self.last}")
        self.last = max(self.last, number)
        if kind == "loop_event" and json.loads(data).get("type") == "text_delta":
            self.seen.append((number, None))

    def cut(self):
        if self.writer is not None:
            self.writer.transport.abort()


async def rest_prompt(choose, session, key, text):
    """Has a prompt run once by REST; returns whether it had a turn."""
    while True:
        try:
            headers = [f"Idempotency-Key: {key}"]
            body = {"prompt": text}
            status, _, answer = await request(choose(), "POST", f"/sessions/{session}/turns?wait=30", body, headers)
        except (Lost, TimeoutError):
            status, answer = 0, ""
        if status == 200:
            return True
        if status == 409 and "no_turn" in answer:
            # It was cancelled before.
            return False
        # 202: it waits for longer than the server does.
        if status not in (0, 202, 429, 500, 502, 503, 504):
            raise Wrong(f"a prompt of REST was answered {status}: {answer}")
        await asyncio.sleep(0.2)


async def rest_accept(choose, session, key, text):
    """Sends a prompt by REST until it is accepted, and does not wait for its turn."""
    while True:
        try:
            headers = [f"Idempotency-Key: {key}"]
            status, _, answer = await request(choose(), "POST", f"/sessions/{session}/turns", {"prompt": text}, headers)
        except (Lost, TimeoutError):
            status, answer = 0, ""
        if status in (200, 202):
            return
        if status not in (0, 429, 500, 502, 503, 504):
            raise Wrong(f"a prompt of REST was answered {status}: {answer}")
        await asyncio.sleep(0.2)
