"""An MCP host, on the official Python SDK, that has a task done through `acp mcp`.

Usage: mcp_host.py ACP AGENT...
"""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client


async def main(acp: str, agent: list[str]) -> None:
    server = StdioServerParameters(command=acp, args=["mcp", "--name", "worker", "--approve-all", "--", *agent])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        assert [tool.name for tool in tools] == ["worker"], tools
        schema = tools[0].model_dump(by_alias=True)["inputSchema"]
        assert schema["required"] == ["task"], schema

        reports = []

        async def progress(number, total, message):
            reports.append(message)

        result = await session.call_tool("worker", {"task": "tool"}, progress_callback=progress)
        answer = result.model_dump(by_alias=True)
        assert not answer["isError"], answer
        assert answer["_meta"]["acp-sdk"]["stopReason"] == "end_turn", answer
        assert any(report.endswith(": completed") for report in reports), reports
        print("a tool call:", answer["_meta"]["acp-sdk"]["toolCalls"], reports)

        # A turn that does not end by itself: the host cancels its request.
        started = asyncio.Event()

        async def begun(number, total, message):
            started.set()

        call = session.call_tool("worker", {"task": "slow"}, progress_callback=begun)
        call = asyncio.create_task(call)
        await asyncio.wait_for(started.wait(), 20)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

        result = await session.call_tool("worker", {"task": "still here"})
        answer = result.model_dump(by_alias=True)
        assert "still here" in answer["content"][0]["text"], answer
        print("after a cancelled request:", answer["content"][0]["text"])

        wrong = await session.call_tool("worker", {"words": "x"})
        assert wrong.model_dump(by_alias=True)["isError"], wrong


asyncio.run(main(sys.argv[1], sys.argv[2:]))
