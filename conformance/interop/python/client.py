"""Drives an agent with the official Python SDK: one line per step, exit code 1 if a step failed.

Usage: client.py AGENT [ARG...] | client.py URL, with a token in ACP_TOKEN   (an agent that understands the words of acp-server)
"""

import asyncio
import os
import pathlib
import sys
import tempfile

import acp
from acp.schema import (
    BooleanConfigOptionCapabilities,
    ClientCapabilities,
    ClientSessionCapabilities,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    ElicitationUrlCapabilities,
    FileSystemCapabilities,
    SessionConfigOptionsCapabilities,
)
from host import Host
from steps import Steps, of_kind, refused, run, text


class Drive(Steps):
    """The steps are the public methods, in this order; a step fails by raising."""

    async def initialize(self):
        files = FileSystemCapabilities(read_text_file=True, write_text_file=True)
        forms = ElicitationCapabilities(form=ElicitationFormCapabilities(), url=ElicitationUrlCapabilities())
        options = SessionConfigOptionsCapabilities(boolean=BooleanConfigOptionCapabilities())
        session = ClientSessionCapabilities(config_options=options)
        able = ClientCapabilities(fs=files, terminal=True, elicitation=forms, session=session)
        answer = await self._agent.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=able)
        assert answer.protocol_version == 1, answer
        assert answer.agent_capabilities.load_session, "the agent does not load sessions"
        assert answer.agent_info and answer.agent_info.name, "the agent has no name"

    async def new_session(self):
        self._created = await self._agent.new_session(cwd=str(self._folder), mcp_servers=[])
        self._session = self._created.session_id
        assert self._session, "an empty session id"

    async def echo(self):
        await self._says("Hello, wörld 🦀", "Hello, wörld 🦀")

    async def content_blocks(self):
        resource = acp.embedded_text_resource("file:///a.txt", "embedded", mime_type="text/plain")
        blocks = [
            acp.text_block("first"),
            acp.image_block("aGk=", "image/png"),
            acp.audio_block("aGk=", "audio/wav"),
            acp.resource_link_block("a.txt", "file:///a.txt"),
            acp.resource_block(resource),
        ]
        _, updates = await self._prompt(blocks)
        assert [update.content for update in updates] == blocks, updates

    async def one_mebibyte(self):
        await self._says("line\n\u2028 \u00fc" * (1 << 17), "line\n\u2028 \u00fc" * (1 << 17))

    async def think(self):
        updates = await self._says("think", "")
        assert text(updates, "agent_thought_chunk") and text(updates), updates

    async def plan(self):
        (plan,) = of_kind(await self._says("plan", ""), "plan")
        assert [entry.status for entry in plan.entries] == ["completed", "in_progress", "pending"], plan

    async def tool(self):
        updates = await self._says("tool", "")
        (call,) = of_kind(updates, "tool_call")
        later = of_kind(updates, "tool_call_update")
        assert {update.tool_call_id for update in later} == {call.tool_call_id}, later
        assert later[-1].status == "completed", later[-1]
        shown = [update.content for update in later if update.content][-1]
        assert [content.type for content in shown][:2] == ["content", "diff"], shown

    async def permission(self):
        for self._host.permission, expected in [("reject_once", "reject"), ("allow_once", "allow")]:
            await self._says("permission", expected)

    async def files(self):
        path = self._folder / "file.txt"
        await self._says(f"write {path} written by the agent", "")
        assert path.read_text() == "written by the agent", path.read_text()
        path.write_text("read by the agent, ünïcode\n")
        await self._says(f"read {path}", "read by the agent, ünïcode")

    async def terminal(self):
        await self._says("terminal echo from-a-terminal", "from-a-terminal")
        assert not self._host.terminals, "a terminal was not released"

    async def elicitation(self):
        for words in ["elicit form", "elicit url"]:
            assert "accept" in text(await self._says(words, "")).lower(), words
        # Notifications and answers may come on different streams.
        while not self._host.completed:
            await asyncio.sleep(0.01)
        assert len(self._host.completed) == 1, self._host.completed

    async def other_updates(self):
        kinds = {"usage": "usage_update", "commands": "available_commands_update", "title New": "session_info_update"}
        for word, kind in kinds.items():
            assert of_kind(await self._says(word, ""), kind), f"{word}: no {kind}"

    async def stream(self):
        stop, updates = await self._prompt("stream 1000")
        chunks = [update.content.text for update in of_kind(updates, "agent_message_chunk")]
        assert (stop, len(chunks)) == ("end_turn", 1000), f"{len(chunks)} chunks before the answer ({stop})"
        assert chunks == sorted(set(chunks)), "the chunks are out of order"

    async def two_sessions(self):
        other = (await self._agent.new_session(cwd=str(self._folder), mcp_servers=[])).session_id
        turns = [self._ask("stream 300", id) for id in (self._session, other)]
        self._host.updates.clear()
        await asyncio.gather(*turns)
        for id in (self._session, other):
            await self._until(lambda updates: len(updates) == 300, id)
        assert [len(self._seen(id)) for id in (self._session, other)] == [300, 300], "the sessions got mixed up"

    async def cancel(self):
        self._host.updates.clear()
        turn = asyncio.create_task(self._ask("slow"))
        while not text(self._seen()):
            await asyncio.sleep(0.01)
        await self._agent.cancel(session_id=self._session)
        answer = await turn
        assert answer.stop_reason == "cancelled", answer
        await self._says("still here", "still here")

    async def fail(self):
        await refused(self._ask("fail"), -32603)

    async def mode(self):
        modes = self._created.modes
        other = next(mode.id for mode in modes.available_modes if mode.id != modes.current_mode_id)
        await self._agent.set_session_mode(session_id=self._session, mode_id=other)
        # Its own update, which over HTTP may come behind the answer, is not one of the prompt's.
        await self._until(lambda updates: of_kind(updates, "current_mode_update"))
        (update,) = of_kind(await self._says("mode", ""), "current_mode_update")
        assert update.current_mode_id == other, update
        await refused(self._agent.set_session_mode(session_id=self._session, mode_id="none"), -32602)

    async def config(self):
        for option in self._created.config_options:
            if option.type == "boolean":
                value = not option.current_value
            else:
                # One may stand under a heading.
                last = option.options[-1]
                value = getattr(last, "options", [last])[-1].value
            assert value != option.current_value, f"{option.id} has one value only"
            answer = await self._agent.set_config_option(option.id, self._session, value)
            values = {option.id: option.current_value for option in answer.config_options}
            assert values[option.id] == value, values

    async def list(self):
        listed = await self._agent.list_sessions()
        assert self._session in [session.session_id for session in listed.sessions], listed

    async def load(self):
        self._host.updates.clear()
        await self._agent.load_session(cwd=str(self._folder), session_id=self._session)
        # The response comes on the stream of the connection, the replay on that of the session.
        replayed = await self._until(lambda updates: "Hello, wörld 🦀" in text(updates))
        said = [text(replayed, kind) for kind in ("user_message_chunk", "agent_message_chunk")]
        assert all("Hello, wörld 🦀" in part for part in said), "the first exchange is not replayed"

    async def unknown(self):
        await refused(self._ask("echo", "nowhere"), -32002)
        await refused(self._agent.load_session(cwd=str(self._folder), session_id="nowhere"), -32002)
        await refused(self._agent.ext_method("no/such/method", {}), -32601)

    async def close(self):
        await self._agent.resume_session(cwd=str(self._folder), session_id=self._session)
        await self._agent.close_session(session_id=self._session)


async def main(command):
    host = Host()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        if command[0].startswith(("http", "ws")):
            agent = acp.connect_to_agent(host, await stream(command[0]), use_unstable_protocol=True)
            return 1 if await run(Drive(host, agent, folder)) else 0
        pipes = {"stderr": None, "limit": 50 << 20}
        spawned = acp.spawn_agent_process(host, *command, transport_kwargs=pipes, use_unstable_protocol=True)
        async with spawned as (agent, process):
            failed = await run(Drive(host, agent, folder))
    print("ok  " if process.returncode == 0 else "FAIL", "exit of the agent:", process.returncode)
    return 1 if failed or process.returncode != 0 else 0


async def stream(url):
    token = os.environ.get("ACP_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if url.startswith("ws"):
        from acp.ws import create_websocket_stream

        # Its WebSocket takes a mebibyte at most, and has no setting for more.
        del Drive.one_mebibyte
        return await create_websocket_stream(url, headers=headers)
    from acp.http import create_http_stream

    Drive._has_two_streams = True
    return create_http_stream(url, headers=headers)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
