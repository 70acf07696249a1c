"""Serves an agent over HTTP and WebSocket by the SDK's server, and prints its URL."""

import socket

import uvicorn
from acp.http.asgi import create_asgi_app


async def serve(make):
    """Serves an agent per connection; they share their sessions, so that another connection finds them."""
    sessions = {}

    def connect(conn):
        agent = make()
        agent.sessions = sessions
        agent.on_connect(conn)
        return agent

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/acp", flush=True)
    config = uvicorn.Config(create_asgi_app(connect), log_level="warning", lifespan="off")
    await uvicorn.Server(config).serve(sockets=[listener])
