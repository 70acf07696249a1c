"""Nodes of one database that are killed, stopped, ended and parted from others at random, while clients use their sessions.

After each round, an audit compares the database with what every client was sent: each event once and in order, each
prompt with one turn and one end, batches without a gap, and no lease that commits after a later one.

Usage: server/interop/failover.py FOLDER-OF-BINARIES [--rounds N] [--seed N] [--takeover SECONDS] [--pooled]
"""

import argparse
import asyncio
import collections
import random
import signal
import statistics
import sys
import time
from pathlib import Path

from failover_audit import TRIGGER, audit
from failover_clients import Client, Lost, Stream, Wrong, request, rest_accept, rest_prompt
from nodes import psql, rest, started, wait_for

NODES = 3
SESSIONS = 4

# The rounds of a session: the audit reads all of its events.
ROUNDS = 5

# The time in which all prompts of a round must have ended.
LIMIT = 90


class Cluster:
    def __init__(self, nodes, dice):
        self.nodes, self.dice = nodes, dice
        self.sessions, self.accepted = {}, collections.defaultdict(list)
        # The prompts without an end, and the last answer to each.
        self.waiting = {}

    def choose(self):
        """Returns the port of any node, whether or not it lives."""
        return self.dice.choice(self.nodes).port

    def populate(self):
        for number in range(SESSIONS):
            created = rest(self.nodes[number % NODES], "/sessions", {"prompt": "hello"})
            session = created["session_id"]
            self.sessions[session] = [Client(self.choose, session), Stream(self.choose, session)]

    def clients(self):
        return [client for clients in self.sessions.values() for client in clients]

    async def prompts(self, number):
        """Has prompts run in all sessions, from both kinds of clients."""
        running = []
        for at, (session, (client, _)) in enumerate(self.sessions.items()):
            words = self.dice.choice(["stream 200", "stream 2000", "slow", f"hello in round {number}"])
            running.append(self.by_socket(session, client, f"socket-{number}-{at}", words))
            if words == "slow":
                running.append(self.cancel(session, 1 + 2 * self.dice.random()))
            few = f"stream {self.dice.randrange(1, 400)}"
            running.append(self.by_rest(session, f"rest-{number}-{at}", few))
            if words != "slow":
                # Nobody cancels it: once it is accepted, it has a turn, whatever happens to its node.
                running.append(self.accept(session, f"accepted-{number}-{at}", few))
        await asyncio.wait_for(asyncio.gather(*running), LIMIT)

    async def by_socket(self, session, client, key, text):
        self.waiting[key] = text, session
        # One that was cancelled before its turn has none.
        if await client.prompt(key, text) != "cancelled":
            self.accepted[session].append(key)
        del self.waiting[key]

    async def by_rest(self, session, key, text):
        self.waiting[key] = text, session
        if await rest_prompt(self.choose, session, key, text):
            self.accepted[session].append(key)
        del self.waiting[key]

    async def accept(self, session, key, text):
        self.waiting[key] = text, session
        await rest_accept(self.choose, session, key, text)
        self.accepted[session].append(key)
        del self.waiting[key]

    async def cancel(self, session, after):
        await asyncio.sleep(after)
        while True:
            try:
                # Of one session, a turn at most: its own one has its key, and ends.
                status, _, _ = await request(self.choose(), "POST", f"/sessions/{session}/cancel?all=true", {})
            except (Lost, TimeoutError):
                status = 0
            if status == 204:
                _, _, text = await self.state(session)
                if '"state":"running"' not in text.replace(" ", ""):
                    return
            await asyncio.sleep(0.3)

    async def state(self, session):
        while True:
            try:
                return await request(self.choose(), "GET", f"/session/{session}")
            except (Lost, TimeoutError):
                await asyncio.sleep(0.1)

    async def fail(self, takeover):
        """Does something bad; returns what, and how to bring all nodes back."""
        await asyncio.sleep(0.2 + self.dice.random())
        node = self.dice.choice(self.nodes)
        kind = self.dice.choice(["kill", "kill", "stop", "end", "cut", "part", "none"])
        pause = self.dice.random() * 2 * takeover
        if kind in ("kill", "end"):
            node.end(signal.SIGKILL if kind == "kill" else signal.SIGTERM)
            await asyncio.to_thread(node.process.wait)
            await asyncio.sleep(pause / 2)
            await asyncio.to_thread(node.start)
        elif kind == "stop":
            node.end(signal.SIGSTOP)
            await asyncio.sleep(pause)
            node.end(signal.SIGCONT)
        elif kind == "part":
            # From the database, from the other nodes, or from both.
            links = self.dice.choice([[node.to_database], [node.from_nodes], [node.to_database, node.from_nodes]])
            for link in links:
                link.cut()
            await asyncio.sleep(pause)
            for link in links:
                link.mend()
        elif kind == "cut":
            for client in self.clients():
                if self.dice.random() < 0.5:
                    client.cut()
        return f"{kind} node {node.number}" if kind not in ("cut", "none") else kind

    async def caught_up(self, database):
        """Waits until all clients have all texts, or have had the time for it; returns what is wrong."""
        end = time.monotonic() + 30
        while True:
            logs, faults = await asyncio.to_thread(audit, database, self.sessions, self.accepted)
            if not faults or time.monotonic() > end:
                return logs, faults
            await asyncio.sleep(0.3)


async def end_all(tasks):
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def rounds(nodes, options):
    database, dice = nodes[0].database, random.Random(options.seed)
    kinds, took, ends, events = collections.Counter(), [], collections.Counter(), 0
    tasks = []
    began = time.monotonic()
    for number in range(options.rounds):
        if number % ROUNDS == 0:
            await end_all(tasks)
            cluster = Cluster(nodes, dice)
            await asyncio.to_thread(cluster.populate)
            tasks = [asyncio.create_task(client.run()) for client in cluster.clients()]
        start = time.monotonic()
        prompts = asyncio.create_task(cluster.prompts(number))
        try:
            what, _ = await asyncio.gather(cluster.fail(options.takeover), prompts)
        except Wrong as error:
            await end_all(tasks)
            return f"round {number}: {error}"
        except TimeoutError:
            await end_all(tasks)
            logs, _ = await asyncio.to_thread(audit, database, cluster.sessions, cluster.accepted)
            lines = [f"prompts of round {number} have no end after {LIMIT} s"]
            for key, (text, session) in cluster.waiting.items():
                client = cluster.sessions[session][0]
                turn = logs[session].keys.get(key)
                lines.append(f"{key} {text!r}: turn {turn}, {logs[session].turns.get(turn)!r} in the log; {session}, joined: "
                             f"{client.joined.is_set()}, {client.connections} connections, last error {client.error}")
            return "\n".join(lines)
        logs, faults = await cluster.caught_up(database)
        took.append(time.monotonic() - start)
        kinds[what.split()[0]] += 1
        print(f"round {number}: {what}, {took[-1]:.1f} s", flush=True)
        if faults:
            await end_all(tasks)
            return "\n".join([f"round {number}, {what}", *faults[:20]])
        for task in tasks:
            if task.done():
                task.result()
        if (number + 1) % ROUNDS == 0 or number + 1 == options.rounds:
            events += sum(log.last for log in logs.values())
            ends.update(str(end)[:60] for log in logs.values() for end in log.turns.values())
    await end_all(tasks)
    print(f"seed {options.seed}: {options.rounds} rounds in {time.monotonic() - began:.0f} s: {dict(kinds)}")
    print(f"{events} events; turns by their end: {dict(ends)}")
    print(f"a round took {statistics.median(took):.1f} s, at most {max(took):.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binaries", type=Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--takeover", type=int, default=3)
    parser.add_argument("--pooled", action="store_true", help="with PgBouncer in transaction mode before the database")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with started(NODES, options.binaries.resolve(), options.takeover, links=True, pooled=options.pooled) as (_, nodes):
        psql(nodes[0].database, TRIGGER)
        problem = asyncio.run(rounds(nodes, options))
        if problem is not None:
            sys.exit(f"wrong: seed {options.seed}: {problem}")


main()
