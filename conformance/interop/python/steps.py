"""Runs the steps of a client, and what they assert with."""

import asyncio

import acp

STEP_SECONDS = 30


class Steps:
    """What the steps of a client share: one connection, one session, prompts in it."""

    _has_two_streams = False

    def __init__(self, host, agent, folder):
        self._host, self._agent, self._folder, self._session = host, agent, folder, None

    def _ask(self, words, session=None):
        blocks = [acp.text_block(words)] if isinstance(words, str) else words
        return self._agent.prompt(session_id=session or self._session, prompt=blocks)

    def _seen(self, session=None):
        return [update for id, update in self._host.updates if id == (session or self._session)]

    async def _prompt(self, words):
        """Prompts; yields the stop reason and the updates that came before it."""
        self._host.updates.clear()
        answer = await self._ask(words)
        # The SDK handles every notification in a task of its own. Where a response comes before `send` of its
        # request returns, the caller goes on before the tasks that wait already; now they have had their turn.
        await asyncio.sleep(0)
        return answer.stop_reason, self._seen()

    async def _says(self, words, expected):
        stop, _ = await self._prompt(words)
        assert stop == "end_turn", f"stop reason {stop}"
        updates = await self._until(lambda updates: expected in text(updates))
        assert expected in text(updates), f"{expected[:80]!r} is not in {text(updates)[:80]!r}"
        return updates

    async def _until(self, fulfilled, session=None):
        """Yields the updates, over HTTP once they fulfil a condition: until the stream of a session is open its
        updates come on that of the connection, and there is no order between two streams."""
        for _ in range(50 if self._has_two_streams else 0):
            if fulfilled(self._seen(session)):
                break
            await asyncio.sleep(0.1)
        return self._seen(session)


async def run(drive):
    """Calls the public methods of `drive` in their order; yields how many of them failed."""
    failed = 0
    for name in [name for name in vars(type(drive)) if not name.startswith("_")]:
        try:
            await asyncio.wait_for(getattr(drive, name)(), STEP_SECONDS)
            print("ok  ", name, flush=True)
        except Exception as error:
            failed += 1
            print("FAIL", name, f"{type(error).__name__}: {error}", flush=True)
    return failed


def of_kind(updates, kind):
    return [update for update in updates if update.session_update == kind]


def text(updates, kind="agent_message_chunk"):
    return "".join(getattr(update.content, "text", "") for update in of_kind(updates, kind))


async def refused(call, code):
    try:
        answer = await call
    except acp.RequestError as error:
        assert error.code == code, f"error {error.code} ({error}) instead of {code}"
    else:
        raise AssertionError(f"no error but {answer}")
