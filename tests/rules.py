"""Projects with a custom auth of their own: agents that tell their user, and an auth.py."""

import json
import textwrap
from pathlib import Path

AUTHENTICATE = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(authorization: str | None):
    if not authorization or not authorization.startswith("Bearer "):
        raise Auth.exceptions.HTTPException(status_code=401, detail="Who are you?")
    name, _, secret = authorization.removeprefix("Bearer ").partition("~")
    return {"identity": name, "permissions": ["ask"], "token": secret}
"""
"""Believes everybody, by a bearer token `name~secret`. The secret is a member of the user."""

OWNED = """
@auth.on
async def owned(ctx, value):
    mine = {"owner": ctx.user.identity}
    value.setdefault("metadata", {}).update(mine)
    return mine
"""
"""What LangGraph's documentation begins with: everything belongs to who made it."""

AGENTS = """
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    said: str
    name: str


def ask(state: State):
    return {"name": interrupt("What is your name?")}


def tell(state: State, config: RunnableConfig, runtime: Runtime):
    user = config["configurable"]["langgraph_auth_user"]
    assert runtime.server_info.user is user
    assert config["configurable"]["langgraph_auth_user_id"] == user.identity
    may = ",".join(config["configurable"]["langgraph_auth_permissions"])
    return {"said": f"{user['identity']} may {may}, with {len(user.get('token', ''))} characters"}


asks = StateGraph(State).add_sequence([ask, tell]).add_edge(START, "ask").compile()
tells = StateGraph(State).add_sequence([tell]).add_edge(START, "tell").compile()
"""


def project(folder: Path, *code: str, authenticate: str = AUTHENTICATE) -> Path:
    """A langgraph.json beside an auth.py that holds this code."""
    config = {
        "graphs": {name: f"./agents.py:{name}" for name in ("asks", "tells")},
        "dependencies": ["."],
        "auth": {"path": "./auth.py:auth"},
    }
    (folder / "agents.py").write_text(AGENTS)
    parts = (authenticate, *code)
    (folder / "auth.py").write_text("\n\n".join(textwrap.dedent(part) for part in parts))
    path = folder / "langgraph.json"
    path.write_text(json.dumps(config))
    return path
