"""A client on the official Python SDK that sends one prompt and prints the answer: prompt.py PROMPT AGENT [ARG...]

An interrupt cancels the turn. `bare` in INTEROP: no files, no terminals.
"""

import asyncio
import os
import signal
import sys

import acp
from acp.schema import ClientCapabilities, FileSystemCapabilities, Implementation
from host import Bare, Host


async def main(prompt, *command):
    bare = os.environ.get("INTEROP") == "bare"
    host = Bare() if bare else Host()
    able = ClientCapabilities()
    if not bare:
        able = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True)
    async with acp.spawn_agent_process(host, *command, transport_kwargs={"stderr": None, "limit": 50 << 20}) as (agent, process):
        died = asyncio.ensure_future(process.wait())
        work = asyncio.ensure_future(take_turn(host, agent, able, prompt))
        await asyncio.wait([died, work], return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            print("the agent has ended", file=sys.stderr)
            return 1
        try:
            return work.result()
        except (acp.RequestError, ConnectionError, ValueError) as error:
            print(error, file=sys.stderr)
            return 1


async def take_turn(host, agent, able, prompt):
    answer = await agent.initialize(
        protocol_version=acp.PROTOCOL_VERSION,
        client_capabilities=able,
        client_info=Implementation(name="python-prompt", version="1.0.0"),
    )
    if answer.protocol_version != acp.PROTOCOL_VERSION:
        raise ValueError(f"the agent speaks version {answer.protocol_version}")
    if answer.auth_methods:
        await agent.authenticate(method_id=answer.auth_methods[0].id)
    session = await agent.new_session(cwd=os.getcwd(), mcp_servers=[])

    def interrupted():
        # From now on every question is answered `cancelled`.
        host.permission = None
        asyncio.ensure_future(agent.cancel(session_id=session.session_id))

    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted)
    ended = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block(prompt)])
    for _, update in host.updates:
        if update.session_update == "agent_message_chunk":
            print(getattr(update.content, "text", ""), end="")
    return 130 if ended.stop_reason == "cancelled" else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
