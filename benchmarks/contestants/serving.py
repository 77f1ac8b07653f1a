"""How the other servers are served: like ours, uvicorn with uvloop and httptools, no access log."""

import os
from typing import Any

import uvicorn

KEY = os.environ.get("REQUEST_STATE_KEYS", "")
"""What request states are sealed with."""


def serve(app: Any, port: int) -> None:
    """Serve an ASGI application until a signal ends it."""
    uvicorn.run(
        app,
        port=port,
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
        server_header=False,
    )
