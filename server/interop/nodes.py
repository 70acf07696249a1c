"""PostgreSQL in a temporary folder and nodes of `acp-server serve` that share it, for the scripts of this folder."""

import asyncio
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

TOKEN = "a-token-of-all-clients"


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
        self.entry, self.pooler = self.port, None

    def pool(self):
        """Has nodes enter through PgBouncer, which has few connections and gives them away after each transaction."""
        self.entry = free_port()
        settings = self.folder / "pooler.ini"
        lines = ["[databases]", f"* = host=127.0.0.1 port={self.port} user=acp", "[pgbouncer]", "listen_addr = 127.0.0.1"]
        lines += [f"listen_port = {self.entry}", "unix_socket_dir =", "auth_type = any", "pool_mode = transaction"]
        lines += ["default_pool_size = 5", "max_client_conn = 200"]
        settings.write_text("\n".join(lines))
        program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if program is None:
            sys.exit("PgBouncer is not installed: no pgbouncer found")
        self.pooler = subprocess.Popen([*self.prefix, program, settings], stderr=subprocess.DEVNULL, cwd="/")
        wait_for(lambda: socket.create_connection(("127.0.0.1", self.entry), 1).close(), "the pooler", 30)

    def end(self):
        if self.pooler is not None:
            self.pooler.kill()
            self.pooler.wait()
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def url(self, port=None):
        return f"postgres://acp@127.0.0.1:{port or self.entry}/postgres"

    def owner(self, session, nodes):
        """Returns the node that has a session: after one has ended, any of the others may have taken it over."""
        query = f"SELECT n.address FROM acp_sessions s JOIN acp_nodes n ON n.key = s.owner WHERE s.id = '{session}'"
        addresses = psql(self, query)
        owners = [node for node in nodes if node.address in addresses]
        if len(owners) != 1:
            sys.exit(f"no node has {session}; the addresses in the database: {addresses}")
        return owners[0]


def psql(database, sql):
    """Returns the lines of a query's result."""
    command = [binaries() / "psql", database.url(database.port), "-qAtX", "-v", "ON_ERROR_STOP=1"]
    done = subprocess.run(command, input=f"SET search_path TO public;\n{sql};", capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"wrong: the database refused a query: {done.stderr}")
    return [line for line in done.stdout.splitlines() if line]


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


class Link:
    """A way to a port. While it is cut, nothing passes and no connection ends, as in a network that loses all packets."""

    def __init__(self, to):
        self.to, self.port = to, free_port()
        self.loop, self.passes = asyncio.new_event_loop(), asyncio.Event()
        self.passes.set()
        threading.Thread(target=self.loop.run_until_complete, args=[listen(self.port, self.connected)], daemon=True).start()
        wait_for(lambda: socket.create_connection(("127.0.0.1", self.port), 1).close(), "a link", 10)

    async def connected(self, reader, writer):
        await self.passes.wait()
        try:
            there = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pipe(reader, there[1], self.passes), pipe(there[0], writer, self.passes))

    def cut(self):
        self.loop.call_soon_threadsafe(self.passes.clear)

    def mend(self):
        self.loop.call_soon_threadsafe(self.passes.set)


class Node:
    """A node. `words` end its command: options, and `--` with the command of a hosted agent. `links`: its ways to the
    database and from the other nodes can be cut."""

    def __init__(self, number, folder, bin, database, takeover, words=(), environment=None, links=False):
        self.number, self.bin, self.database = number, bin, database
        self.takeover, self.words, self.environment = takeover, words, environment or os.environ
        self.folder = folder / f"node-{number}"
        self.folder.mkdir(mode=0o700)
        self.port, self.listens = free_port(), free_port()
        self.to_database = Link(database.entry) if links else None
        self.from_nodes = Link(self.listens) if links else None
        self.address = f"http://127.0.0.1:{self.from_nodes.port if links else self.listens}"
        for name, text in [("token", TOKEN), ("secret", "a-secret-of-all-nodes")]:
            path = self.folder / name
            path.write_text(text)
            path.chmod(0o600)
        self.start()

    def start(self):
        environment = {**self.environment, "XDG_RUNTIME_DIR": str(self.folder), "XDG_STATE_HOME": str(self.folder)}
        environment["ACP_STORE"] = self.database.url(self.to_database and self.to_database.port)
        command = [self.bin / "acp-server", "serve", "--port", str(self.port), "--token-file", self.folder / "token"]
        command += ["--node-address", self.address, "--node-listen", f"127.0.0.1:{self.listens}", "--node-secret-file", self.folder / "secret"]
        command += ["--node-takeover", str(self.takeover), *self.words]
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


async def pipe(reader, writer, passes=None):
    try:
        while data := await reader.read(65536):
            if passes is not None:
                await passes.wait()
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def join(nodes, reader, writer, head=b""):
    """Joins a client to the first of these nodes that takes a connection."""
    for node in nodes:
        try:
            there = await asyncio.open_connection("127.0.0.1", node.port)
        except OSError:
            continue
        there[1].write(head)
        await asyncio.gather(pipe(reader, there[1]), pipe(there[0], writer))
        return
    writer.close()


async def listen(port, connected):
    server = await asyncio.start_server(connected, "127.0.0.1", port)
    async with server:
        await server.serve_forever()


async def balance(nodes, port, first=False):
    """Gives each connection to a node that takes it: to any, or to the first one that does."""

    async def connected(reader, writer):
        await join(nodes if first else random.sample(nodes, len(nodes)), reader, writer)

    await listen(port, connected)


async def balance_requests(nodes, port):
    """Gives each request to the next node that takes a connection: nothing sticks."""
    turn = itertools.count()

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
        first = next(turn) % len(nodes)
        await join(nodes[first:] + nodes[:first], reader, writer, b"\r\n".join(head))

    await listen(port, connected)


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


@contextlib.contextmanager
def started(count, bin, takeover, words=(), environment=None, links=False, pooled=False):
    """Starts a database and nodes; shows the ends of the nodes' logs if the scenes end the program."""
    folder = Path(tempfile.mkdtemp())
    os.chmod(folder, 0o755)
    database, nodes = None, []

    def end():
        for node in nodes:
            node.end(signal.SIGCONT)
            node.process.kill()
            node.process.wait()
        if database is not None:
            database.end()
        shutil.rmtree(folder, ignore_errors=True)

    def terminate(*_):
        end()
        # Tasks and threads may wait for what is no more.
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)
    try:
        database = Database(folder)
        if pooled:
            database.pool()
        for number in range(count):
            nodes.append(Node(number, folder, bin, database, takeover, words, environment, links))
        yield folder, nodes
    except SystemExit:
        for node in nodes:
            print(f"-- log of node {node.number}", file=sys.stderr)
            print((node.folder / "log").read_text()[-3000:], file=sys.stderr)
        raise
    finally:
        end()
