"""An agent on the official Python SDK that understands words of acp-server; see words.py."""

import asyncio
import os
import sys

import acp
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    AuthMethodAgent,
    ClientCapabilities,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    Implementation,
    ListSessionsResponse,
    PromptCapabilities,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionInfo,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
)
from words import follow


# How the agent differs from the one that has all: see the README of this folder.
KIND = os.environ.get("INTEROP", "full")
CHOICES = {"mode": ("ask", "code"), "model": ("small", "large")}


class Session:
    """What one session remembers. Its turns run one after the other."""

    def __init__(self, id, cwd, able):
        self.id, self.cwd, self.able = id, cwd, able
        self.mode, self.model, self.verbose = "ask", "small", False
        self.history, self.turns, self.lock = [], set(), asyncio.Lock()

    def state(self):
        modes = [SessionMode(id=id, name=id.title()) for id in CHOICES["mode"]]
        state = {
            "modes": SessionModeState(current_mode_id=self.mode, available_modes=modes),
            "config_options": self.config(),
        }
        return {} if KIND == "bare" else state

    def config(self):
        selects = [select(id, getattr(self, id), values) for id, values in CHOICES.items()]
        known = self.able.session and self.able.session.config_options
        if not (known and known.boolean):
            return selects
        verbose = SessionConfigOptionBoolean(
            id="verbose", name="Verbose", type="boolean", current_value=self.verbose
        )
        return [*selects, verbose]


def select(id, current, values):
    options = [SessionConfigSelectOption(value=value, name=value.title()) for value in values]
    return SessionConfigOptionSelect(
        id=id, name=id.title(), category=id, type="select", current_value=current, options=options
    )


class Bare:
    """Creates sessions, and answers prompts."""

    def __init__(self):
        self.sessions = {}
        self.known = KIND != "login"

    def on_connect(self, conn):
        self.client = conn

    def find(self, session_id):
        if session_id not in self.sessions:
            raise acp.RequestError.resource_not_found(session_id)
        return self.sessions[session_id]

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **_):
        self.able = client_capabilities or ClientCapabilities()
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_info=Implementation(name="python-agent", version="1.0.0"),
            auth_methods=[] if self.known else [AuthMethodAgent(id="word", name="With a word")],
            agent_capabilities=self.capabilities(),
        )

    def capabilities(self):
        return AgentCapabilities()

    async def new_session(self, cwd, **_):
        if not self.known:
            raise acp.RequestError.auth_required()
        check_cwd(cwd)
        session = Session(f"session-{len(self.sessions):08}", cwd, self.able)
        self.sessions[session.id] = session
        return acp.NewSessionResponse(session_id=session.id, **session.state())

    async def prompt(self, session_id, prompt, **_):
        session = self.find(session_id)
        # The task exists before the first wait: a cancel that arrives from now on is for this prompt too.
        turn = asyncio.ensure_future(self.take_turn(session, prompt))
        session.turns.add(turn)
        try:
            await turn
        except asyncio.CancelledError:
            return acp.PromptResponse(stop_reason="cancelled")
        finally:
            session.turns.discard(turn)
        return acp.PromptResponse(stop_reason="end_turn")

    async def take_turn(self, session, prompt):
        async with session.lock:
            session.history += [acp.update_user_message(block) for block in prompt]
            await follow(self.client, session, prompt)

    async def cancel(self, session_id, **_):
        for turn in self.find(session_id).turns:
            turn.cancel()


class Agent(Bare):
    """Has everything else too."""

    def capabilities(self):
        sessions = SessionCapabilities(
            list=SessionListCapabilities(), resume=SessionResumeCapabilities(), close=SessionCloseCapabilities()
        )
        return AgentCapabilities(
            load_session=True,
            prompt_capabilities=PromptCapabilities(image=True, audio=True, embedded_context=True),
            session_capabilities=sessions,
        )

    async def load_session(self, cwd, session_id, **_):
        check_cwd(cwd)
        session = self.find(session_id)
        for update in session.history:
            await self.client.session_update(session_id, update)
        return acp.LoadSessionResponse(**session.state())

    async def resume_session(self, session_id, cwd, **_):
        check_cwd(cwd)
        return ResumeSessionResponse(**self.find(session_id).state())

    async def close_session(self, session_id, **_):
        await self.cancel(self.find(session_id).id)

    async def list_sessions(self, cwd=None, cursor=None, **_):
        if cursor is not None:
            raise acp.RequestError.invalid_params({"cursor": "there is one page only"})
        listed = [session for session in self.sessions.values() if cwd in (None, session.cwd)]
        return ListSessionsResponse(sessions=[SessionInfo(session_id=session.id, cwd=session.cwd) for session in listed])

    async def set_session_mode(self, session_id, mode_id, **_):
        options = await self.change(self.find(session_id), "mode", mode_id)
        update = ConfigOptionUpdate(session_update="config_option_update", config_options=options)
        await self.client.session_update(session_id, update)

    async def set_config_option(self, config_id, session_id, value, **_):
        options = await self.change(self.find(session_id), config_id, value)
        return SetSessionConfigOptionResponse(config_options=options)

    async def change(self, session, id, value):
        """Sets an option of the session; yields them all. A mode is an option too."""
        if value not in CHOICES.get(id, ()) and not (id == "verbose" and isinstance(value, bool)):
            raise acp.RequestError.invalid_params({id: value})
        setattr(session, id, value)
        if id == "mode":
            update = CurrentModeUpdate(session_update="current_mode_update", current_mode_id=value)
            await self.client.session_update(session.id, update)
        return session.config()


class LogsIn(Agent):
    async def authenticate(self, method_id, **_):
        if method_id != "word":
            raise acp.RequestError.invalid_params({"methodId": method_id})
        self.known = True
        return AuthenticateResponse()


def check_cwd(cwd):
    if not os.path.isabs(cwd):
        raise acp.RequestError.invalid_params({"cwd": f"{cwd!r} is not an absolute path"})


if __name__ == "__main__":
    agent = {"bare": Bare, "login": LogsIn}.get(KIND, Agent)
    if "--serve" in sys.argv:
        from serve import serve

        sys.exit(asyncio.run(serve(agent)))
    # Closing and resuming sessions is stable, yet this SDK still asks for the flag.
    sys.exit(asyncio.run(acp.run_agent(agent(), use_unstable_protocol=True)))
