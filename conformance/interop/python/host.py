"""The client's side of the protocol on the official Python SDK: real files, real processes."""

import asyncio
import pathlib

import acp
from acp.schema import AcceptElicitationResponse, AllowedOutcome, DeniedOutcome, TerminalExitStatus


class Host:
    """Keeps every update, and chooses permissions by kind, never by position."""

    def __init__(self):
        self.updates = []
        self.completed = []
        self.permission = "allow_once"
        self.terminals = {}

    async def session_update(self, session_id, update, **_):
        self.updates.append((session_id, update))

    async def request_permission(self, session_id, tool_call, options, **_):
        chosen = next((option.option_id for option in options if option.kind == self.permission), None)
        if chosen is None:
            return acp.RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return acp.RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def create_elicitation(self, message, mode, **_):
        return AcceptElicitationResponse(action="accept", content={})

    async def complete_elicitation(self, elicitation_id, **_):
        self.completed.append(elicitation_id)

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):
        return acp.ReadTextFileResponse(content=pathlib.Path(path).read_text())

    async def write_text_file(self, session_id, path, content, **_):
        pathlib.Path(path).write_text(content)
        return acp.WriteTextFileResponse()

    async def create_terminal(self, session_id, command, args=None, env=None, cwd=None, output_byte_limit=None, **_):
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(command, *(args or []), cwd=cwd, stdout=pipe)
        terminal_id = f"terminal-{len(self.terminals)}"
        self.terminals[terminal_id] = process
        return acp.CreateTerminalResponse(terminal_id=terminal_id)

    async def wait_for_terminal_exit(self, session_id, terminal_id, **_):
        return acp.WaitForTerminalExitResponse(exit_code=await self.terminals[terminal_id].wait())

    async def terminal_output(self, session_id, terminal_id, **_):
        process = self.terminals[terminal_id]
        output = (await process.stdout.read()).decode()
        status = TerminalExitStatus(exit_code=process.returncode)
        return acp.TerminalOutputResponse(output=output, truncated=False, exit_status=status)

    async def kill_terminal(self, session_id, terminal_id, **_):
        if self.terminals[terminal_id].returncode is None:
            self.terminals[terminal_id].kill()

    async def release_terminal(self, session_id, terminal_id, **_):
        await self.kill_terminal(session_id, terminal_id)
        del self.terminals[terminal_id]
