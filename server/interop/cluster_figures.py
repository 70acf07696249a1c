"""What several nodes cost: turns a second and their times for SQLite and for PostgreSQL with one to three nodes, local and passed
on; the time from the death of a node to the next event of its session; transactions of the database for each turn.

All is measured in one run, with clients in Python on the same machine, so only the ratios say something.

Usage: server/interop/cluster_figures.py FOLDER-OF-BINARIES [--seconds N] [--kills N] [--takeover SECONDS]
"""

import argparse
import asyncio
import datetime
import os
import signal
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from failover_clients import Client, Socket
from nodes import TOKEN, free_port, psql, rest, started, wait_for

CLIENTS = 12


class Turns:
    """A client that has one turn after the other."""

    async def open(self, port, session=None):
        self.socket, self.ids, self.times = await Socket.open(port), 0, []
        await self.call("initialize", {"protocolVersion": 1})
        if session is None:
            session = (await self.call("session/new", {"cwd": "/", "mcpServers": []}))["sessionId"]
        else:
            await self.call("session/load", {"cwd": "/", "mcpServers": [], "sessionId": session})
        self.session = session
        return self

    async def call(self, method, params):
        self.ids += 1
        self.socket.send({"id": self.ids, "method": method, "params": params})
        while True:
            message = await self.socket.receive()
            if message.get("id") == self.ids and "method" not in message:
                assert "error" not in message, message
                return message["result"]

    async def run(self, until):
        prompt = {"sessionId": self.session, "prompt": [{"type": "text", "text": "hello"}]}
        while time.monotonic() < until:
            began = time.monotonic()
            await self.call("session/prompt", prompt)
            self.times.append(time.monotonic() - began)


async def measure(ports, seconds, through=None):
    """Returns turns a second, and the times of turns. `through`: ports at which the clients are, for other nodes' sessions."""
    clients = [await Turns().open(ports[at % len(ports)]) for at in range(CLIENTS)]
    if through is not None:
        owners = clients
        clients = [await Turns().open(through[at % len(through)], owners[at].session) for at in range(CLIENTS)]
    await asyncio.gather(*(client.run(time.monotonic() + 1) for client in clients))
    for client in clients:
        client.times.clear()
    began = time.monotonic()
    await asyncio.gather(*(client.run(began + seconds) for client in clients))
    took = time.monotonic() - began
    times = sorted(each for client in clients for each in client.times)
    for client in clients:
        client.socket.cut()
    return len(times) / took, times


def row(name, result, base=None):
    rate, times = result
    p50, p99 = times[len(times) // 2] * 1000, times[int(len(times) * 0.99)] * 1000
    ratio = "" if base is None else f"{rate / base:.2f}"
    print(f"| {name} | {rate:.0f} | {ratio} | {p50:.1f} ms | {p99:.1f} ms |", flush=True)
    return rate


def sqlite(bin, seconds):
    with tempfile.TemporaryDirectory() as folder:
        port, token = free_port(), Path(folder) / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
        command = [bin / "acp-server", "serve", "--port", str(port), "--token-file", token, "--store", Path(folder) / "store.db"]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        try:
            wait_for(lambda: rest(type("Server", (), {"port": port}), "/readyz"), "the server", 20)
            return asyncio.run(measure([port], seconds))
        finally:
            process.kill()
            process.wait()


async def kills(nodes, count):
    """Returns the seconds from the kill of a node to the next event, for a client of another node."""
    found = []
    for number in range(count):
        owner, other = nodes[number % 3], nodes[(number + 1) % 3]
        session = rest(owner, "/sessions", {"prompt": "slow"})["session_id"]
        client = Client(lambda port=other.port: port, session)
        task = asyncio.create_task(client.run())
        while client.last < 10:
            await asyncio.sleep(0.02)
        owner.end(signal.SIGKILL)
        began, before = time.monotonic(), len(client.seen)
        await asyncio.to_thread(owner.process.wait)
        key = asyncio.create_task(client.prompt(f"after-{number}", "hello"))
        while len(client.seen) == before:
            await asyncio.sleep(0.005)
        found.append(time.monotonic() - began)
        await key
        task.cancel()
        await asyncio.to_thread(owner.start)
    return sorted(found)


def transactions(database):
    # Its processes report about once a second.
    time.sleep(1.5)
    return int(psql(database, "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binaries", type=Path)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--takeover", type=int, default=3)
    options = parser.parse_args()
    bin = options.binaries.resolve()
    print(f"{datetime.date.today()}, {os.cpu_count()} processors, {CLIENTS} clients, {options.seconds:g} s each\n")
    print("| store | turns a second | of SQLite | median | p99 |\n|---|---|---|---|---|")
    base = row("SQLite, 1 server", sqlite(bin, options.seconds), None)
    with started(3, bin, 30) as (_, nodes):
        ports = [node.port for node in nodes]
        before = transactions(nodes[0].database)
        result = asyncio.run(measure(ports[:1], options.seconds))
        after = transactions(nodes[0].database)
        row("PostgreSQL, clients at 1 node", result, base)
        each = (after - before) / (len(result[1]) * (options.seconds + 1) / options.seconds)
        row("PostgreSQL, clients at 2 nodes", asyncio.run(measure(ports[:2], options.seconds)), base)
        local = row("PostgreSQL, clients at 3 nodes", asyncio.run(measure(ports, options.seconds)), base)
        rotated = ports[1:] + ports[:1]
        passed = row("the same, each at a node without its session", asyncio.run(measure(ports, options.seconds, rotated)), base)
    print(f"\nTransactions of the database for each turn: about {each:.1f} (with heartbeats and new sessions; one second of warming up is estimated).")
    print(f"Passed on, of local: {passed / local:.2f}.")
    with started(3, bin, options.takeover) as (_, nodes):
        found = asyncio.run(kills(nodes, options.kills))
    shown = f"median {statistics.median(found):.1f} s, p99 {found[int(len(found) * 0.99)]:.1f} s"
    print(f"From the kill of a node to the next event, `--node-takeover {options.takeover}`, {len(found)} kills: {shown}.")


main()
