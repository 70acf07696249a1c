"""What a person sees when a node is killed in the middle of an answer: the web page in Chromium, `acp chat` in a terminal, and
a hosted agent that moves with its conversation. All reach the nodes by one address, behind which is the first node alive.

Usage: server/interop/failover_scenes.py FOLDER-OF-BINARIES [page] [chat] [--agent FOLDER] [--takeover SECONDS]

`page` needs node, npm and Chromium, `chat` tmux. FOLDER has agents.py and fake_llm.py, as for client/interop/real_agents.py,
which installs opencode.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nodes import TOKEN, balance, check, free_port, rest, run, started

HERE = Path(__file__).resolve().parent

# The time in which a person goes on at another node: with the default takeover of 30 s, and some more.
BEYOND_TAKEOVER = 5


def texts(node, session):
    """Returns the agent's texts of a session, as a node tells them."""
    return json.dumps(rest(node, f"/sessions/{session}"))


def same_ticks(shown, node, what):
    """Checks that what a person has seen of the interrupted answer is the log, once and in order."""
    session = rest(node, "/sessions")["sessions"][0]["session_id"]
    ticks = [int(tick) for tick in re.findall(r"tick (\d+)", shown)]
    logged = [int(tick) for tick in re.findall(r"tick (\d+)", texts(node, session))]
    logged = sorted(set(logged))
    check(len(logged) > 10 and logged == list(range(1, len(logged) + 1)), f"the log has {len(logged)} pieces of the answer")
    check(ticks == logged, f"{what} shows each piece once, in order", f"{ticks}\n{logged}")


async def page(nodes, port, folder, takeover):
    for name in ("failover-page.mjs",):
        shutil.copy(HERE / name, folder)
    install = ["npm", "install", "--silent", "--no-fund", "--no-audit", "playwright-core@1.64.1"]
    subprocess.run(install, cwd=folder, check=True, stdout=sys.stderr)
    browser = shutil.which("chromium") or sys.exit("there is no Chromium")
    command = ["node", "failover-page.mjs", browser, f"http://127.0.0.1:{port}/", TOKEN]
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, stdout=asyncio.subprocess.PIPE)
    line = json.loads(await asyncio.wait_for(process.stdout.readline(), 120))
    assert line["at"] == "mid"
    nodes[0].end(signal.SIGKILL)
    nodes[0].process.wait()
    line = await asyncio.wait_for(process.stdout.readline(), 180)
    await process.wait()
    check(line.startswith(b"{"), "the page goes on at the other node")
    line = json.loads(line)
    seconds = line["after"] / 1000
    check(seconds < takeover + BEYOND_TAKEOVER, f"the same page has its next answer {seconds:.1f} s after its node was killed")
    same_ticks(line["text"], nodes[1], "the page")


class Terminal:
    """A program in a terminal of tmux, which answers what the program asks its terminal."""

    def __init__(self, command, environment, folder):
        self.tmux = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        words = [str(word) for word in command]
        start = ["new-session", "-d", "-x", "120", "-y", "50", *words]
        subprocess.run([*self.tmux, *start], env=environment, cwd=folder, check=True)

    def shown(self):
        """Returns the text of the terminal, from its beginning."""
        command = [*self.tmux, "capture-pane", "-p", "-J", "-S", "-"]
        return subprocess.run(command, capture_output=True, text=True).stdout

    def type(self, line):
        subprocess.run([*self.tmux, "send-keys", "-l", line], check=True)
        subprocess.run([*self.tmux, "send-keys", "Enter"], check=True)

    async def until(self, text, limit, times=1):
        end = time.monotonic() + limit
        while (shown := self.shown()).count(text) < times:
            if time.monotonic() > end:
                sys.exit(f"wrong: the terminal does not show {text!r} {times} times after {limit} s\n{shown}")
            await asyncio.sleep(0.1)

    def close(self):
        subprocess.run([*self.tmux, "kill-server"], check=False)


async def chat(bin, nodes, port, folder, takeover):
    environment = {**os.environ, "ACP_TOKEN": TOKEN, "XDG_DATA_HOME": str(folder), "TERM": "xterm-256color", "COLUMNS": "100"}
    command = [bin / "acp", "chat", "--no-bell", "--url", f"ws://127.0.0.1:{port}/acp"]
    terminal = Terminal(command, environment, folder)
    try:
        await terminal.until("/help lists", 30)
        terminal.type("slow")
        await terminal.until("tick 12", 30)
        before = time.monotonic()
        nodes[0].end(signal.SIGKILL)
        nodes[0].process.wait()
        await terminal.until("ended during the turn", takeover + 30)
        terminal.type("after the failure")
        # What was typed, and the answer.
        await terminal.until("after the failure", 30, times=2)
        seconds = time.monotonic() - before
        check(seconds < takeover + BEYOND_TAKEOVER, f"acp chat has its next answer {seconds:.1f} s after its node was killed")
        same_ticks(terminal.shown(), nodes[1], "acp chat")
    finally:
        terminal.close()


async def agent(bin, folder, takeover):
    """opencode, with one home for all nodes and a model that keeps what it was asked."""
    sys.path.insert(0, str(HERE.parents[1] / "client" / "interop"))
    sys.path.insert(0, str(folder))
    import fake_llm
    import real_agents

    with tempfile.TemporaryDirectory() as scratch:
        place = real_agents.Place(folder, "opencode", real_agents.agents(folder, "1")["opencode"], Path(scratch))
        place.model.kill()
        place.model.wait()
        asked = Path(scratch) / "asked"
        model = fake_llm.start(int(place.model.args[3]), str(place.workspace), str(asked))
        with started(2, bin, takeover, ["--", *place.command], place.env) as (_, nodes):
            client = Path(scratch) / "client"
            client.mkdir()
            said, began = "HELLO before the move", time.monotonic()
            code, output = await run(bin, client, nodes[0].url(), "--cwd", str(place.workspace), said)
            check(code == 0, f"opencode answers at node 0 in {time.monotonic() - began:.1f} s", output)
            session = rest(nodes[1], "/sessions")["sessions"][0]["session_id"]
            nodes[0].end(signal.SIGKILL)
            nodes[0].process.wait()
            before, size = time.monotonic(), asked.stat().st_size
            code, output = await run(bin, client, nodes[1].url(), "--resume", session, "--cwd", str(place.workspace), "HELLO after the move")
            took = time.monotonic() - before
            check(code == 0, f"and at node 1, {took:.1f} s after node 0 was killed", output)
            later = asked.read_text()[size:]
            # It keeps the last two messages of each request.
            both = [line for line in later.splitlines() if '["assistant", "Hello' in line and '["user", "HELLO after' in line]
            check(both, "its model is asked with what was said before", later[-2000:])
            told = texts(nodes[1], session)
            check(said in told and "HELLO after the move" in told, "the session has both turns")
        model.shutdown()


async def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binaries", type=Path)
    parser.add_argument("scenes", nargs="*")
    parser.add_argument("--agent", type=Path)
    parser.add_argument("--takeover", type=int, default=30)
    options = parser.parse_args()
    bin = options.binaries.resolve()
    if options.agent is not None:
        await agent(bin, options.agent.resolve(), options.takeover)
    for scene in options.scenes:
        with started(2, bin, options.takeover) as (folder, nodes):
            port = free_port()
            balancer = asyncio.create_task(balance(nodes, port, first=True))
            place = folder / "client"
            place.mkdir()
            if scene == "page":
                await page(nodes, port, place, options.takeover)
            elif scene == "chat":
                await chat(bin, nodes, port, place, options.takeover)
            balancer.cancel()
            await asyncio.gather(balancer, return_exceptions=True)


asyncio.run(main())
