"""What a person sees when a node is killed in the middle of an answer: the web page in Chromium, `acp chat` in a terminal, and
a hosted agent that moves with its conversation. All reach the nodes by one address, behind which is the first node alive.

Usage: server/interop/failover_scenes.py FOLDER-OF-BINARIES [page] [chat] [agent FOLDER] [--takeover SECONDS]

`page` needs node, npm and Chromium. FOLDER has isolate.sh, agents.py and fake_llm.py, as for conformance/interop/real_agents.py.
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


async def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binaries", type=Path)
    parser.add_argument("scenes", nargs="*", default=["page", "chat"])
    parser.add_argument("--takeover", type=int, default=30)
    options = parser.parse_args()
    bin = options.binaries.resolve()
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


asyncio.run(main())
