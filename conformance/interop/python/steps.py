"""Runs the steps of a client, and what they assert with."""

import asyncio

import acp

STEP_SECONDS = 30


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
    return "".join(update.content.text for update in of_kind(updates, kind))


async def refused(call, code):
    try:
        answer = await call
    except acp.RequestError as error:
        assert error.code == code, f"error {error.code} ({error}) instead of {code}"
    else:
        raise AssertionError(f"no error but {answer}")
