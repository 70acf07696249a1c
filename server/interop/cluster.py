"""Nodes of one database that are killed, stopped and ended while clients use them.

Starts PostgreSQL in a temporary folder, three nodes of `acp-server serve`, and a load balancer that gives each request
to another node. Clients are `acp run` and requests of REST at any node. Says what it has seen; ends with 1 at the first
thing that is wrong.

Usage: server/interop/cluster.py FOLDER-OF-BINARIES
"""

import asyncio
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

TAKEOVER = 6
TOKEN = "a-token-of-all-clients"
NODES = 3


def binaries():
    """Returns the folder of PostgreSQL's programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in found:
        if (folder / "initdb").exists():
            return folder
    program = shutil.which("initdb")
    if program is None:
        sys.exit("PostgreSQL is not installed: no initdb found")
    return Path(program).parent


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Database:
    def __init__(self, folder):
        self.folder, self.port = folder / "database", free_port()
        self.folder.mkdir()
        # It refuses to run as root.
        self.prefix = []
        if os.getuid() == 0:
            shutil.chown(self.folder, "nobody")
            self.prefix = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        bin = binaries()
        data = self.folder / "data"
        initdb = [bin / "initdb", "--no-sync", "-E", "UTF8", "--locale=C", "-A", "trust", "-U", "acp", "-D", data]
        subprocess.run([*self.prefix, *initdb], check=True, stdout=subprocess.DEVNULL, cwd="/")
        options = ["listen_addresses=127.0.0.1", f"port={self.port}", f"unix_socket_directories={self.folder}", "fsync=off"]
        command = [bin / "postgres", "-D", data, *(word for option in options for word in ("-c", option))]
        self.process = subprocess.Popen([*self.prefix, *command], stderr=subprocess.DEVNULL, cwd="/")
        wait_for(lambda: socket.create_connection(("127.0.0.1", self.port), 1).close(), "the database", 30)

    def url(self):
        return f"postgres://acp@127.0.0.1:{self.port}/postgres"


def wait_for(attempt, what, limit):
    """Repeats an attempt until it does not fail."""
    end = time.monotonic() + limit
    while True:
        try:
            return attempt()
        except Exception as error:  # noqa: BLE001
            if time.monotonic() > end:
                sys.exit(f"{what} was not there after {limit} s: {error}")
            time.sleep(0.05)


class Node:
    def __init__(self, number, folder, bin, database):
        self.number, self.bin, self.database = number, bin, database
        self.folder = folder / f"node-{number}"
        self.folder.mkdir(mode=0o700)
        self.port, self.address = free_port(), f"http://127.0.0.1:{free_port()}"
        for name, text in [("token", TOKEN), ("secret", "a-secret-of-all-nodes")]:
            path = self.folder / name
            path.write_text(text)
            path.chmod(0o600)
        self.start()

    def start(self):
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.folder), "XDG_STATE_HOME": str(self.folder)}
        environment["ACP_STORE"] = self.database.url()
        command = [self.bin / "acp-server", "serve", "--port", str(self.port), "--token-file", self.folder / "token"]
        command += ["--node-address", self.address, "--node-secret-file", self.folder / "secret"]
        command += ["--node-takeover", str(TAKEOVER)]
        log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(command, stderr=log, env=environment)
        wait_for(lambda: rest(self, "/readyz"), f"node {self.number}", 20)

    def end(self, how):
        self.process.send_signal(how)

    def url(self):
        return f"ws://127.0.0.1:{self.port}/acp"


def rest(node, path, body=None):
    request = urllib.request.Request(f"http://127.0.0.1:{node.port}{path}")
    request.add_header("Authorization", f"Bearer {TOKEN}")
    if body is not None:
        request.add_header("Content-Type", "application/json")
        request.data = json.dumps(body).encode()
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


async def balance(nodes, port):
    """Gives each request to the next node that takes a connection: nothing sticks."""
    turn = itertools.count()

    async def pipe(reader, writer):
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def connected(reader, writer):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        except (OSError, asyncio.IncompleteReadError):
            writer.close()
            return
        if not any(line.lower().startswith(b"upgrade:") for line in head):
            # A connection has one request, so that the next one comes to another node.
            head = [line for line in head if not line.lower().startswith(b"connection:")]
            head.insert(1, b"Connection: close")
        first = next(turn)
        for offset in range(len(nodes)):
            node = nodes[(first + offset) % len(nodes)]
            try:
                there = await asyncio.open_connection("127.0.0.1", node.port)
            except OSError:
                continue
            there[1].write(b"\r\n".join(head))
            await asyncio.gather(pipe(reader, there[1]), pipe(there[0], writer))
            return
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


async def run(bin, folder, url, *words):
    """Runs `acp run`; returns its exit code and what it has written."""
    environment = {**os.environ, "ACP_TOKEN": TOKEN, "XDG_DATA_HOME": str(folder)}
    command = [str(bin / "acp"), "run", "--url", url, *words]
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder
    )
    output, _ = await asyncio.wait_for(process.communicate(), 120)
    return process.returncode, output.decode()


def check(condition, what, detail=""):
    if not condition:
        sys.exit(f"wrong: {what}\n{detail}")
    print(f"ok: {what}", flush=True)


def texts(node, session):
    """Returns all events of a session, each once and in order."""
    events = rest(node, f"/sessions/{session}")
    return json.dumps(events)


async def scenes(bin, folder, nodes, port):
    any_node, by_http = f"ws://127.0.0.1:{port}/acp", f"http://127.0.0.1:{port}/acp"
    code, output = await run(bin, folder, nodes[0].url(), "hello at the first")
    check(code == 0 and "hello at the first" in output, "a turn at node 0", output)
    session = rest(nodes[1], "/sessions")["sessions"][0]["session_id"]
    for node in nodes[1:]:
        said = f"hello at node {node.number}"
        code, output = await run(bin, folder, node.url(), "--resume", session, said)
        check(code == 0 and said in output, f"a turn of the same session at node {node.number}", output)

    for url, transport in [(by_http, "HTTP"), (any_node, "WebSocket")]:
        code, output = await run(bin, folder, url, f"hello over {transport}")
        check(code == 0 and f"hello over {transport}" in output, f"a turn over {transport}, each request at another node", output)
        said = f"again over {transport}"
        code, output = await run(bin, folder, url, "--resume", session, said)
        check(code == 0 and said in output, f"a turn of the first session over {transport}", output)

    environment = {**os.environ, "ACP_STORE": nodes[0].database.url()}
    listed = subprocess.run([bin / "acp-server", "nodes"], env=environment, capture_output=True, text=True).stdout
    check(all(node.address in listed for node in nodes) and listed.count(" alive ") == NODES, "all nodes are listed", listed)

    # Killed in the middle of a turn that a client of another node has begun.
    turn = asyncio.create_task(run(bin, folder, nodes[1].url(), "--resume", session, "slow"))
    await asyncio.sleep(1.5)
    began = time.monotonic()
    nodes[0].end(signal.SIGKILL)
    code, output = await turn
    took = time.monotonic() - began
    check(code == 1 and "ended during the turn" in output, f"the turn of a killed node is interrupted after {took:.1f} s", output)
    check(took < 2 * TAKEOVER + 10, "in the time of a takeover")
    code, output = await run(bin, folder, nodes[1].url(), "--resume", session, "goes on")
    check(code == 0 and "goes on" in output, "and its session goes on", output)
    nodes[0].process.wait()
    nodes[0].start()

    # The same over HTTP. One node has the session, and perhaps another one the connection.
    turn = asyncio.create_task(run(bin, folder, by_http, "--resume", session, "slow"))
    await asyncio.sleep(1.5)
    nodes[1].end(signal.SIGKILL)
    code, output = await turn
    check(code == 1 and "ended during the turn" in output, "a turn over HTTP of a killed node is interrupted", output)
    code, output = await run(bin, folder, by_http, "--resume", session, "goes on")
    check(code == 0 and "goes on" in output, "and its session goes on over HTTP", output)
    nodes[1].process.wait()
    nodes[1].start()

    # Hangs, is replaced, and goes on: what it writes late is refused.
    code, output = await run(bin, folder, nodes[2].url(), "hello at node 2")
    late = rest(nodes[1], "/sessions")["sessions"][0]["session_id"]
    turn = asyncio.create_task(run(bin, folder, nodes[2].url(), "--resume", late, "slow"))
    await asyncio.sleep(1.5)
    nodes[2].end(signal.SIGSTOP)
    await asyncio.sleep(TAKEOVER + 1)
    code, output = await run(bin, folder, nodes[0].url(), "--resume", late, "taken over")
    check(code == 0 and "taken over" in output, "a session of a node that hangs is taken over", output)
    nodes[2].end(signal.SIGCONT)
    code, output = await turn
    check(code != 0, "the turn of the node that hung has failed", output)
    events = texts(nodes[0], late)
    check(events.count("taken over") >= 1, "the log has what the other node wrote")
    wait_for(lambda: rest(nodes[2], "/readyz"), "the node that hung", 20)
    code, output = await run(bin, folder, nodes[2].url(), "--resume", late, "back again")
    check(code == 0 and "back again" in output, "the node that hung takes part again", output)

    # Ended as by a rolling restart, while a client at the balancer is in a turn elsewhere.
    for node in nodes:
        node.end(signal.SIGTERM)
        node.process.wait()
        code, output = await run(bin, folder, any_node, "--resume", session, f"without node {node.number}")
        check(code == 0, f"a turn while node {node.number} restarts", output)
        code, output = await run(bin, folder, by_http, "--resume", session, f"over HTTP without {node.number}")
        check(code == 0, "and one over HTTP", output)
        node.start()

    # Whoever is asked answers alike.
    answers = {texts(node, session) for node in nodes}
    check(len(answers) == 1, "all nodes tell the same of the session")


async def main():
    bin = Path(sys.argv[1]).resolve()
    folder = Path(tempfile.mkdtemp())
    os.chmod(folder, 0o755)
    database, nodes = None, []
    try:
        database = Database(folder)
        nodes = [Node(number, folder, bin, database) for number in range(NODES)]
        port = free_port()
        balancer = asyncio.create_task(balance(nodes, port))
        await scenes(bin, folder, nodes, port)
        balancer.cancel()
    except SystemExit:
        for node in nodes:
            print(f"-- log of node {node.number}", file=sys.stderr)
            print((node.folder / "log").read_text()[-3000:], file=sys.stderr)
        raise
    finally:
        for node in nodes:
            node.end(signal.SIGCONT)
            node.process.kill()
            node.process.wait()
        if database is not None:
            database.process.send_signal(signal.SIGQUIT)
            database.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


asyncio.run(main())
