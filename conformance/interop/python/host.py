"""The client's side of the protocol on the official Python SDK: real files, real processes."""

import asyncio
import os
import pathlib

import acp
from acp.schema import AcceptElicitationResponse, AllowedOutcome, DeniedOutcome, TerminalExitStatus


class Bare:
    """Keeps every update, and chooses permissions by kind, never by position. Serves no files and no terminals."""

    def __init__(self):
        self.updates = []
        self.permission = "allow_once"

    async def session_update(self, session_id, update, **_):
        self.updates.append((session_id, update))

    async def request_permission(self, session_id, tool_call, options, **_):
        chosen = next((option.option_id for option in options if option.kind == self.permission), None)
        if chosen is None:
            return acp.RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return acp.RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))


class Host(Bare):
    """Serves files, terminals and forms too."""

    def __init__(self):
        super().__init__()
        self.completed = []
        self.terminals = {}

    async def create_elicitation(self, message, mode, **_):
        return AcceptElicitationResponse(action="accept", content={})

    async def complete_elicitation(self, elicitation_id, **_):
        self.completed.append(elicitation_id)

    async def read_text_file(self, session_id, path, line=None, limit=None, **_):
        lines = absolute(path).read_text().splitlines(keepends=True)
        first = max(line or 1, 1) - 1
        return acp.ReadTextFileResponse(content="".join(lines[first : None if limit is None else first + limit]))

    async def write_text_file(self, session_id, path, content, **_):
        absolute(path).write_text(content)
        return acp.WriteTextFileResponse()

    async def create_terminal(self, session_id, command, args=None, env=None, cwd=None, output_byte_limit=None, **_):
        terminal = Terminal(output_byte_limit)
        await terminal.start(command, args or [], {variable.name: variable.value for variable in env or []}, cwd)
        terminal_id = f"terminal-{len(self.terminals)}"
        self.terminals[terminal_id] = terminal
        return acp.CreateTerminalResponse(terminal_id=terminal_id)

    async def wait_for_terminal_exit(self, session_id, terminal_id, **_):
        return acp.WaitForTerminalExitResponse(exit_code=await self.terminals[terminal_id].wait())

    async def terminal_output(self, session_id, terminal_id, **_):
        return self.terminals[terminal_id].shown()

    async def kill_terminal(self, session_id, terminal_id, **_):
        self.terminals[terminal_id].kill()

    async def release_terminal(self, session_id, terminal_id, **_):
        await self.kill_terminal(session_id, terminal_id)
        del self.terminals[terminal_id]


def absolute(path):
    if not os.path.isabs(path):
        raise acp.RequestError.invalid_params({"path": f"{path!r} is not an absolute path"})
    return pathlib.Path(path)


class Terminal:
    """A process, and what it has printed."""

    def __init__(self, limit):
        self.limit, self.output = limit, b""

    async def start(self, command, args, env, cwd):
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(command, *args, cwd=cwd, env=os.environ | env, stdout=pipe)
        self.reader = asyncio.ensure_future(self.read())

    async def read(self):
        while piece := await self.process.stdout.read(65536):
            self.output += piece

    async def wait(self):
        await self.reader
        return await self.process.wait()

    def shown(self):
        """The end of the output, from the start of a character on."""
        code = self.process.returncode
        status = None if code is None else TerminalExitStatus(exit_code=code)
        kept = self.output if self.limit is None else self.output[max(len(self.output) - self.limit, 0) :]
        cut = len(kept) < len(self.output)
        return acp.TerminalOutputResponse(output=kept.decode(errors="ignore"), truncated=cut, exit_status=status)

    def kill(self):
        if self.process.returncode is None:
            self.process.kill()
