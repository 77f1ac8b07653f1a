"""Rows that somebody else wrote make no object of their choice; rows of ours give back all kinds.

A checkpoint is read by another instance than the one that wrote it, from a real database.
"""

import ast
import json
import pickle
import subprocess
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import ormsgpack
import psycopg
import pytest
from langgraph.checkpoint.serde import jsonplus

from core.protocol import ToolResult
from tests.conversation import Instance, accept, instance, said

pytestmark = pytest.mark.anyio


def told(result: ToolResult) -> dict[str, str]:
    return json.loads(said(result))["told"]


async def test_every_declared_kind_of_value_survives_a_pause_as_itself(
    here: Instance, database: str
) -> None:
    """A first request that is answered at once never pauses: that is what must come out."""
    asked = await here.asks("kinds")
    answers = accept(asked, Go="yes")
    never_paused = told(await here.ends("kinds", answers))
    async with instance(database, here.journal) as there:
        paused = told(await there.ends("kinds", answers, asked.request_state))
    assert never_paused.pop("anything") == "Undeclared Undeclared(x=1)"
    assert paused.pop("anything") == "dict {'x': 1}", "nobody declared its class"
    assert paused == never_paused


# What somebody who can write rows may try. Each would make the file that `touch` makes.


RUN = ("subprocess", "getoutput")


def ext(code: int, *content: Any) -> tuple[str, bytes]:
    return "msgpack", ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(content)))


class Bomb:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return subprocess.getoutput, (self.command,)


def constructor(version: int, command: str) -> bytes:
    made = {"lc": version, "type": "constructor", "id": [*RUN]}
    given = {"kwargs": {"cmd": command}} if version == 1 else {"args": [command]}
    return json.dumps({**made, **given}).encode()


FORMS = (
    *("single", "positional", "keywords", "method", "pydantic 1", "pydantic 2", "in a list"),
    *("json 1", "json 2", "json eval", "pickle", "unknown type", "no msgpack", "deep"),
)


def bomb(form: str, command: str) -> tuple[str, bytes]:
    """A value's type and bytes."""
    if form == "in a list":
        inner = ormsgpack.Ext(0, ormsgpack.packb((*RUN, command)))
        return "msgpack", ormsgpack.packb([{"a": [inner]}])
    evil: dict[str, tuple[str, bytes]] = {
        "single": ext(jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG, *RUN, command),
        "positional": ext(jsonplus.EXT_CONSTRUCTOR_POS_ARGS, *RUN, [command]),
        "keywords": ext(jsonplus.EXT_CONSTRUCTOR_KW_ARGS, *RUN, {"cmd": command}),
        "method": ext(jsonplus.EXT_METHOD_SINGLE_ARG, "os", "sys", command, "exit"),
        "pydantic 1": ext(jsonplus.EXT_PYDANTIC_V1, *RUN, {"cmd": command}),
        "pydantic 2": ext(jsonplus.EXT_PYDANTIC_V2, *RUN, {"cmd": command}, "x"),
        "json 1": ("json", constructor(1, command)),
        "json 2": ("json", constructor(2, command)),
        "json eval": (
            "json",
            constructor(2, f"__import__('os').system('{command}')").replace(
                b'["subprocess", "getoutput"]', b'["builtins", "eval"]'
            ),
        ),
        "pickle": ("pickle", pickle.dumps(Bomb(command))),
        "unknown type": ("xml", b"<a/>"),
        "no msgpack": ("msgpack", b"\xc1\xff"),
        "deep": ("msgpack", b"\x91" * 100_000 + b"\xc0"),
    }
    return evil[form]


def tamper(database: str, form: str, place: str, file: Path) -> None:
    """Put it into the rows of the only call."""
    kind, data = bomb(form, f"touch {file}")
    with psycopg.connect(database, autocommit=True) as connection:
        if place == "state":
            change = "UPDATE checkpoint_blobs SET type = %s, blob = %s WHERE channel = 'model'"
        else:
            change = "UPDATE checkpoint_writes SET type = %s, blob = %s WHERE channel = %s"
        cursor = connection.execute(
            change.encode(), [kind, data] if place == "state" else [kind, data, "__interrupt__"]
        )
        assert cursor.rowcount == 1


@pytest.mark.parametrize("place", ["state", "interrupt"])
@pytest.mark.parametrize("form", FORMS)
async def test_a_row_that_names_something_to_run_runs_nothing(
    here: Instance, database: str, tmp_path: Path, form: str, place: str
) -> None:
    asked = await here.asks("kinds")
    file = tmp_path / "made"
    tamper(database, form, place, file)
    answers = accept(asked, Go="yes")
    with suppress(Exception) if place == "interrupt" else nullcontext():
        # A question that can't be read is a fault of ours to tell; a state is the agent's.
        await here.ends("kinds", answers, asked.request_state)
    assert not file.exists()
    assert states(database) in ([("settled",)], [("asked",)]), "nobody holds the round for long"


def states(database: str) -> list[tuple[str]]:
    with psycopg.connect(database) as connection:
        return connection.execute("SELECT state FROM intermezzo_rounds").fetchall()


def test_the_bombs_go_off_where_nothing_is_held_back(tmp_path: Path) -> None:
    """Else the test above would see nothing."""
    open_to_all = jsonplus.JsonPlusSerializer(
        pickle_fallback=True, allowed_msgpack_modules=True, allowed_json_modules=True
    )
    went_off: set[str] = set()
    for form in FORMS:
        file = tmp_path / form.replace(" ", "-")
        try:
            open_to_all.loads_typed(bomb(form, f"touch {file}"))
        except Exception:
            continue
        if file.exists():
            went_off.add(form)
    assert went_off >= {"single", "positional", "keywords", "in a list", "json 2", "pickle"}


async def test_inline_values_are_data_whatever_they_look_like(
    here: Instance, database: str, tmp_path: Path
) -> None:
    """What a checkpoint's own JSON holds is revived by nobody."""
    asked = await here.asks("kinds")
    file = tmp_path / "made"
    evil = json.loads(constructor(2, f"touch {file}"))
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "UPDATE checkpoints SET checkpoint = jsonb_set(checkpoint,"
            " '{channel_values,anything}', %s::jsonb)",
            [json.dumps(evil)],
        )
        connection.execute("DELETE FROM checkpoint_blobs WHERE channel = 'anything'")
    result = await here.ends("kinds", accept(asked, Go="yes"), asked.request_state)
    kind, _, value = told(result)["anything"].partition(" ")
    assert (kind, ast.literal_eval(value)) == ("dict", evil)
    assert not file.exists()
