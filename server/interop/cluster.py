"""Nodes of one database that are killed, stopped and ended while clients use them.

Starts PostgreSQL in a temporary folder, PgBouncer in transaction mode, three nodes of `acp-server serve`, and a load
balancer that gives each request to another node. Clients are `acp run` and requests of REST at any node. Says what it
has seen; ends with 1 at the first thing that is wrong.

Usage: server/interop/cluster.py FOLDER-OF-BINARIES
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from nodes import balance_requests, check, free_port, rest, run, started, wait_for

TAKEOVER = 6
NODES = 3


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
    owner = nodes[0].database.owner(session, nodes)
    began = time.monotonic()
    owner.end(signal.SIGKILL)
    code, output = await turn
    took = time.monotonic() - began
    check(code == 1 and "ended during the turn" in output, f"the turn of a killed node is interrupted after {took:.1f} s", output)
    check(took < 2 * TAKEOVER + 10, "in the time of a takeover")
    code, output = await run(bin, folder, nodes[1].url(), "--resume", session, "goes on")
    check(code == 0 and "goes on" in output, "and its session goes on", output)
    owner.process.wait()
    owner.start()

    # The same over HTTP. One node has the session, and perhaps another one the connection.
    turn = asyncio.create_task(run(bin, folder, by_http, "--resume", session, "slow"))
    await asyncio.sleep(1.5)
    owner = nodes[0].database.owner(session, nodes)
    owner.end(signal.SIGKILL)
    code, output = await turn
    check(code == 1 and "ended during the turn" in output, "a turn over HTTP of a killed node is interrupted", output)
    code, output = await run(bin, folder, by_http, "--resume", session, "goes on")
    check(code == 0 and "goes on" in output, "and its session goes on over HTTP", output)
    owner.process.wait()
    owner.start()

    # Killed with prompts that were accepted and wait: another node runs them, although nobody asks for the session.
    created = rest(nodes[0], "/sessions", {"prompt": "slow"})["session_id"]
    waiting = ["accepted one", "accepted two", "accepted three"]
    messages = [rest(nodes[0], f"/sessions/{created}/turns", {"prompt": text})["message_id"] for text in waiting]
    nodes[0].end(signal.SIGKILL)
    began = time.monotonic()

    def ended():
        # The list is read from the store: no node is asked to open the session.
        runs = [run for run in rest(nodes[1], "/runs")["runs"] if run["run_id"].startswith(created) and run["ended_at"]]
        assert len(runs) == len(waiting) + 1, f"{len(runs)} turns have ended"

    wait_for(ended, "the prompts that the killed node had accepted", 2 * TAKEOVER + 20)
    took = time.monotonic() - began
    ran = texts(nodes[2], created)
    order = [ran.index(f'"messageId": "{message}"') for message in messages]
    once = all(ran.count(message) == 1 for message in messages)
    check(once and order == sorted(order), f"the prompts that a killed node had accepted run after {took:.1f} s", ran)
    nodes[0].process.wait()
    nodes[0].start()

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
    with started(NODES, bin, TAKEOVER, pooled=True) as (folder, nodes):
        port = free_port()
        balancer = asyncio.create_task(balance_requests(nodes, port))
        await scenes(bin, folder, nodes, port)
        balancer.cancel()


asyncio.run(main())
