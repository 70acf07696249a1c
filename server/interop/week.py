#!/usr/bin/env python3
"""Uses `acp-server serve` at random for an hour, and fails unless everything is given back afterwards.

Usage: week.py SERVER-BINARY [CHART.svg [SECONDS [SEED]]]      (week.svg, 3,600 s, seed 1)
Clients open, prompt, steer, leave, resume, fork and delete sessions of two hosted agents, and cut their
connections. Agents and the server are killed by SIGKILL. At the end all clients leave and all sessions are deleted.
"""

import asyncio
import collections
import json
import os
import pathlib
import random
import re
import signal
import sys
import tempfile
import time
import uuid

import week_chart

TOKEN = "a-token-for-the-week"
CLIENTS = 12
PROCESSES = 8  # of each of the two agents
IDLE_TIMEOUT = 5  # seconds
SAMPLE_EVERY = 2  # seconds
# What the end may have beyond a server that has just started. Agents and what they have started: nothing.
DESCRIPTORS = 16
MEMORY = 32  # MiB
STORE = 40  # MiB; each of the two stores keeps its write-ahead log of 16 MiB
# A request that takes longer is a fault. An agent that is started again may wait for the delay after failures.
ANSWER_TIMEOUT = 60
AGENTS = """
[[agents]]
name = "{name}"
command = ["{python}", "-S", "-E", "{script}"]
agent_process = "{process}"
limits = {{ processes = {processes}, idle_timeout = {idle} }}
"""


class Server:
    """The server with its store; it can be killed and started again."""

    def __init__(self, binary):
        self.binary, self.folder = binary, tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        self.mark = f"ACP_WEEK={uuid.uuid4().hex}"
        script = pathlib.Path(__file__).with_name("week-agent.py").resolve()
        (self.path / "agents.toml").touch(0o600)
        (self.path / "agents.toml").write_text("".join(
            AGENTS.format(name=name, process=process, python=sys.executable, script=script,
                          processes=PROCESSES, idle=IDLE_TIMEOUT)
            for name, process in (("shared", "shared"), ("alone", "session"))))
        self.agents_seen = set()

    async def start(self):
        name, value = self.mark.split("=")
        env = {**os.environ, name: value, "XDG_RUNTIME_DIR": self.folder.name, "XDG_DATA_HOME": self.folder.name,
               "ACP_SERVER_TOKEN": TOKEN}
        self.log = open(self.path / "log", "ab")
        before = self.log.tell()
        self.process = await asyncio.create_subprocess_exec(
            self.binary, "serve", "--port", "0", "--store", str(self.path / "week.db"), "--agents",
            str(self.path / "agents.toml"), "--requests-per-second", "0", env=env, stderr=self.log)
        for _ in range(600):
            text = (self.path / "log").read_bytes()[before:].decode()
            if found := re.search(r"listening on http://127\.0\.0\.1:(\d+)/", text):
                self.port = int(found[1])
                return
            if self.process.returncode is not None:
                break
            await asyncio.sleep(0.1)
        raise SystemExit(f"the server did not start; it printed:\n{text}")

    async def end(self, how):
        self.process.send_signal(how)
        await self.process.wait()
        self.log.close()

    def agents(self):
        """The agents' processes and all that they have started, by the mark in their environment."""
        found = {}
        for entry in os.scandir("/proc"):
            if not entry.name.isdigit() or int(entry.name) == self.process.pid:
                continue
            try:
                with open(f"/proc/{entry.name}/environ", "rb") as environ:
                    if self.mark.encode() not in environ.read().split(b"\0"):
                        continue
                with open(f"/proc/{entry.name}/cmdline", "rb") as command:
                    found[int(entry.name)] = b"week-agent" in command.read()
            except OSError:
                pass
        self.agents_seen.update(pid for pid, agent in found.items() if agent)
        return found

    async def sample(self, began):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        memory = re.search(r"VmRSS:\s+(\d+)", status)
        text = (await http(self.port, "GET", "/metrics"))[2].decode()
        return {
            "seconds": time.monotonic() - began,
            "processes": len(self.agents()),
            "descriptors": len(os.listdir(f"/proc/{self.process.pid}/fd")),
            "memory": int(memory[1]) / 1024,
            "store": sum(file.stat().st_size for file in self.path.glob("week*.db*")) / 2**20,
            "sessions": sum(int(number) for number in re.findall(r"^acp_server_sessions(?:\{.*\})? (\d+)", text, re.M)),
        }


async def read_head(reader):
    text = await reader.readuntil(b"\r\n\r\n")
    headers = dict(line.split(b": ", 1) for line in text.split(b"\r\n")[1:] if b": " in line)
    return int(text.split(b" ", 2)[1]), {name.lower(): value for name, value in headers.items()}


def head(method, target, **headers):
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {TOKEN}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def http(port, method, target, body=None, **headers):
    """Sends a request on a socket of its own, and returns the status, the headers and the body of the answer."""
    async with asyncio.timeout(ANSWER_TIMEOUT):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            body = b"" if body is None else json.dumps(body).encode()
            writer.write(head(method, target, Connection="close", Content_Type="application/json",
                              Content_Length=len(body), **headers) + body)
            status, answer = await read_head(reader)
            length = int(answer.get(b"content-length", b"0"))
            return status, answer, await (reader.readexactly(length) if length else reader.read())
        finally:
            writer.close()


class Client:
    """A client of one agent at /acp: its connection's stream, and requests on sockets of their own."""

    def __init__(self, server, agent):
        self.server, self.path, self.streams = server, f"/acp/{agent}", []

    async def connect(self):
        self.calls, self.number = {}, 0
        params = {"protocolVersion": 1, "clientCapabilities": {}}
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        _, headers, _ = await http(self.server.port, "POST", self.path, body)
        self.connection = headers[b"acp-connection-id"].decode()
        await self.listen()

    async def listen(self, session=None):
        headers = {"Acp_Session_Id": session} if session else {}
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        writer.write(head("GET", self.path, Accept="text/event-stream", Acp_Connection_Id=self.connection, **headers))
        status, _ = await read_head(reader)
        if status != 200:
            writer.close()
            raise ConnectionError(f"status {status} of a stream")
        self.streams.append((asyncio.create_task(self.read(reader, self.calls)), writer))

    @staticmethod
    async def read(reader, calls):
        try:
            while line := await reader.readline():
                if line.startswith(b"data: "):
                    message = json.loads(line[6:])
                    if (call := calls.pop(message.get("id"), None)) and not call.done():
                        call.set_result(message)
        except ConnectionError:
            pass
        for call in calls.values():
            call.cancelled() or call.done() or call.set_exception(ConnectionError("the stream ended"))

    async def call(self, method, **params):
        self.number += 1
        number, call = self.number, asyncio.get_running_loop().create_future()
        # It may fail after its request has failed, when nobody waits for it.
        call.add_done_callback(lambda call: call.cancelled() or call.exception())
        self.calls[number] = call
        body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await self.post(body)
        async with asyncio.timeout(ANSWER_TIMEOUT):
            return await call

    async def post(self, body):
        status, _, text = await http(self.server.port, "POST", self.path, body, Acp_Connection_Id=self.connection)
        if status != 202:
            raise ConnectionError(f"status {status}: {text[:200]}")

    def cut(self):
        """Loses the sockets without an end of the connection."""
        for task, writer in self.streams:
            writer.transport.abort()
            task.cancel()
        self.streams = []


class Week:
    def __init__(self, server, seed):
        self.server, self.random = server, random.Random(seed)
        self.sessions = {"shared": [], "alone": []}
        self.counts, self.faults, self.over = collections.Counter(), [], False

    async def user(self, agent):
        """One user: acts at random, and connects again whenever its connection is lost."""
        client = None
        while not self.over:
            try:
                if client is None:
                    client = Client(self.server, agent)
                    await client.connect()
                await self.act(client, agent)
                await asyncio.sleep(self.random.uniform(0, 0.6))
            except TimeoutError:
                self.faults.append(f"no answer within {ANSWER_TIMEOUT} s at {agent}")
                client = None
            except (OSError, EOFError, KeyError):
                # The server was killed, or this client's connection went with an earlier server.
                self.counts["connections lost"] += 1
                client.cut()
                client = None
                await asyncio.sleep(0.2)
        if client:
            client.cut()

    async def act(self, client, agent):
        sessions = self.sessions[agent]
        acts = ["open"] * 3 + ["prompt"] * 8 + ["steer"] * 2 + ["leave", "resume", "resume", "fork", "delete", "cut"]
        act = self.random.choice(acts) if sessions else "open"
        session = self.random.choice(sessions) if sessions else None
        self.counts[act] += 1
        if act == "open":
            answer = await client.call("session/new", cwd="/", mcpServers=[])
            if "result" in answer:
                await self.enter(client, agent, answer["result"]["sessionId"])
        elif act == "prompt":
            word = self.random.choices(["say", "work", "leave", "die"], [10, 4, 2, 1])[0]
            body = {"prompt": word}
            wait = self.random.choice(["", "?wait=20"])
            status, _, _ = await http(self.server.port, "POST", f"/sessions/{session}/turns{wait}", body)
            self.counts[f"prompts answered {status}"] += 1
        elif act == "steer":
            body = {"prompt": "go on", "otherwise": "queue"}
            status, _, _ = await http(self.server.port, "POST", f"/sessions/{session}/steer", body)
            self.counts[f"steers answered {status}"] += 1
        elif act == "leave":
            await http(self.server.port, "POST", f"/sessions/{session}/close")
        elif act == "resume":
            method = self.random.choice(["session/load", "session/resume"])
            answer = await client.call(method, sessionId=session, cwd="/", mcpServers=[])
            if "result" in answer:
                await client.listen(session)
                prompt = [{"type": "text", "text": "work"}]
                await client.post({"jsonrpc": "2.0", "id": f"p{client.number}", "method": "session/prompt",
                                   "params": {"sessionId": session, "prompt": prompt}})
        elif act == "fork":
            answer = await client.call("session/fork", sessionId=session, cwd="/", mcpServers=[])
            if "result" in answer:
                await self.enter(client, agent, answer["result"]["sessionId"])
        elif act == "delete":
            sessions.remove(session)
            await http(self.server.port, "DELETE", f"/sessions/{session}")
        elif act == "cut":
            client.cut()
            await client.connect()
        if act in ("open", "resume", "fork"):
            self.counts[f"{act} failed"] += "error" in answer

    async def enter(self, client, agent, session):
        self.sessions[agent].append(session)
        await client.listen(session)

    async def killer(self, seconds):
        """Kills an agent every few seconds, and the server six times."""
        kills = [seconds * number / 7 for number in range(1, 7)]
        began = time.monotonic()
        while not self.over:
            await asyncio.sleep(self.random.uniform(1, 4))
            agents = [pid for pid, agent in self.server.agents().items() if agent]
            if agents:
                self.counts["agents killed"] += 1
                try:
                    os.kill(self.random.choice(agents), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            if kills and time.monotonic() - began > kills[0]:
                kills.pop(0)
                self.counts["servers killed"] += 1
                await self.server.end(signal.SIGKILL)
                await self.server.start()

    async def sampler(self, samples, began):
        while True:
            try:
                samples.append(await self.server.sample(began))
            except (OSError, EOFError):
                pass  # It is being killed.
            await asyncio.sleep(SAMPLE_EVERY)

    async def leave(self):
        """Deletes every session that the stores have, the forks whose answers were lost included."""
        while True:
            _, _, text = await http(self.server.port, "GET", "/sessions?limit=1000")
            rows = json.loads(text)
            rows = rows["sessions"] if isinstance(rows, dict) else rows
            if not rows:
                return
            for row in rows:
                status, _, text = await http(self.server.port, "DELETE", f"/sessions/{row.get('session_id') or row['id']}")
                if status not in (204, 404):
                    raise SystemExit(f"DELETE of a session: status {status}, {text}")


async def settled(server, began, samples, first):
    """Waits up to two minutes until everything is given back; returns what is not."""
    limits = {"processes": 0, "descriptors": first["descriptors"] + DESCRIPTORS, "memory": first["memory"] + MEMORY,
              "store": first["store"] + STORE, "sessions": 0}
    end = time.monotonic() + 120
    while True:
        samples.append(last := await server.sample(began))
        over = {what: limit for what, limit in limits.items() if last[what] > limit}
        if not over or time.monotonic() > end:
            return last, limits, over
        await asyncio.sleep(SAMPLE_EVERY)


async def main():
    binary = sys.argv[1]
    chart = sys.argv[2] if len(sys.argv) > 2 else "week.svg"
    seconds, seed = (int(sys.argv[3]) if len(sys.argv) > 3 else 3600), int(sys.argv[4]) if len(sys.argv) > 4 else 1
    server = Server(os.path.abspath(binary))
    await server.start()
    try:
        await use(server, chart, seconds, seed)
    finally:
        if server.process.returncode is None:
            await server.end(signal.SIGKILL)


async def use(server, chart, seconds, seed):
    began, samples = time.monotonic(), []
    first = await server.sample(began)
    week = Week(server, seed)
    sampler = asyncio.create_task(week.sampler(samples, began))
    users = [week.user("shared" if number % 2 else "alone") for number in range(CLIENTS)]
    tasks = [asyncio.create_task(task) for task in (*users, week.killer(seconds))]
    done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    week.over = True
    for task in done:
        task.result()
    await asyncio.gather(*tasks)
    sampler.cancel()
    await week.leave()
    last, limits, over = await settled(server, began, samples, first)
    await server.end(signal.SIGTERM)
    left = server.agents()

    print("| | at the start | most | at the end | limit |\n|---|---|---|---|---|")
    for what, limit in limits.items():
        most = max(sample[what] for sample in samples)
        print(f"| {what} | {first[what]:.0f} | {most:.0f} | {last[what]:.0f} | {limit:.0f} |")
    print(f"\n{seconds} s, seed {seed}, {len(server.agents_seen)} agents seen; "
          + ", ".join(f"{count:,} {what}" for what, count in sorted(week.counts.items()) if count))
    week_chart.write(chart, samples, limits)
    faults = week.faults + [f"{what}: {last[what]:.0f}, limit {limit:.0f}" for what, limit in over.items()]
    if left:
        faults.append(f"{len(left)} processes of agents outlive the server: {left}")
    if faults:
        print("\n".join(["not given back, or not answered:", *faults]), file=sys.stderr)
        keep = f"{chart}.log"
        pathlib.Path(keep).write_bytes((server.path / "log").read_bytes())
        raise SystemExit(f"the log of the server is in {keep}")


if __name__ == "__main__":
    asyncio.run(main())
