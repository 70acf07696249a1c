"""What the first word of a prompt makes the agent do."""

import asyncio

import acp
from acp.helpers import start_tool_call, update_tool_call
from acp.schema import ConfigOptionUpdate, CurrentModeUpdate, PermissionOption, ToolCallUpdate


async def follow(client, session, prompt):
    """Does what `prompt` says; everything sent is kept for replay, but for `stream`."""

    async def send(update):
        session.history.append(update)
        await client.session_update(session.id, update)

    async def say(text):
        await send(acp.update_agent_message_text(text))

    said = getattr(prompt[0], "text", "") if prompt else ""
    word, _, rest = said.partition(" ")
    if not offered(session.able, word):
        return await say(f"The client does not offer what {word!r} needs.")
    if word in ("mode", "config") and not session.state():
        return await say(f"This agent has no {word}.")
    match word:
        case "ping":
            pass
        case "think":
            await send(acp.update_agent_thought_text("Let me think."))
            await say("I have thought.")
        case "plan":
            states = {"Read": "completed", "Change": "in_progress", "Test": "pending"}
            await send(acp.update_plan([acp.plan_entry(step, status=status) for step, status in states.items()]))
        case "tool":
            path = f"{session.cwd}/example.txt"
            diff = acp.tool_diff_content(path, "new\n", "old\n")
            await send(start_tool_call("call-1", "Edit example.txt", kind="edit", status="pending"))
            await send(update_tool_call("call-1", status="in_progress"))
            content = [acp.tool_content(acp.text_block("One line changed.")), diff]
            await send(update_tool_call("call-1", status="completed", content=content))
        case "permission":
            await send(start_tool_call("call-2", "Run a command", kind="execute", status="pending"))
            chosen = await ask(client, session)
            for status in ("in_progress", "completed") if chosen == "allow" else ("failed",):
                await send(update_tool_call("call-2", status=status))
            await say(f"Permission: {chosen}")
        case "perm":
            for _ in range(int(rest)):
                await ask(client, session)
        case "read":
            answer = await client.read_text_file(session_id=session.id, path=rest)
            await say(answer.content)
        case "write":
            path, _, content = rest.partition(" ")
            await client.write_text_file(session_id=session.id, path=path, content=content)
            await say(f"Wrote {path}")
        case "terminal":
            command, *args = rest.split()
            await say(await terminal(client, session, command, args))
        case "mode":
            await send(CurrentModeUpdate(session_update="current_mode_update", current_mode_id=session.mode))
        case "config":
            await send(ConfigOptionUpdate(session_update="config_option_update", config_options=session.config()))
        case "slow":
            for tick in range(300):
                await say(f"tick {tick}\n")
                await asyncio.sleep(0.1)
        case "fail":
            raise acp.RequestError.internal_error({"details": "the prompt asked for a failure"})
        case "stream":
            for number in range(int(rest)):
                text = f"{number:08} the quick brown fox jumps over the lazy dog, and so"
                await client.session_update(session.id, acp.update_agent_message_text(text))
        case _:
            for block in prompt:
                await send(acp.update_agent_message(block))


def offered(able, word):
    """Whether the client declares what a word needs."""
    match word:
        case "read":
            return able.fs.read_text_file
        case "write":
            return able.fs.write_text_file
        case "terminal":
            return able.terminal
    return True


async def ask(client, session):
    """Asks for permission; yields the id of the chosen option, or `cancelled`."""
    answer = await client.request_permission(
        session_id=session.id,
        tool_call=ToolCallUpdate(tool_call_id="call-2", title="Run a command"),
        options=[
            PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
            PermissionOption(option_id="reject", name="Reject", kind="reject_once"),
        ],
    )
    return answer.outcome.option_id if answer.outcome.outcome == "selected" else "cancelled"


async def terminal(client, session, command, args):
    """Runs a command in a terminal of the client; yields what it printed and its exit code."""
    created = await client.create_terminal(session_id=session.id, command=command, args=args)
    both = {"session_id": session.id, "terminal_id": created.terminal_id}
    status = await client.wait_for_terminal_exit(**both)
    answer = await client.terminal_output(**both)
    await client.release_terminal(**both)
    return f"{answer.output}exit code: {status.exit_code}"
