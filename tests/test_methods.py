"""The methods of each era, and what their results carry."""

import json
import time
from pathlib import Path
from typing import Any, NoReturn

import mcp_types
import pytest

from core.catalog import Catalog
from core.errors import InvalidParams, MethodNotFound
from core.methods import PAGE, Endpoint
from core.protocol import HANDSHAKE, LATEST, SERVER_INFO_KEY, SUPPORTED, Request
from tests.served import EXAMPLES

pytestmark = pytest.mark.anyio


async def no_rounds() -> NoReturn:
    raise AssertionError("nothing here may run an agent")


def endpoint(config: Path = EXAMPLES, *, private: bool = False) -> Endpoint:
    return Endpoint(
        catalog=Catalog.read(config),
        rounds=no_rounds,
        name="agents",
        version="1.2.3",
        ttl_ms=5,
        private=private,
    )


async def answer(
    method: str, version: str = LATEST, at: Endpoint | None = None, **params: Any
) -> dict[str, Any]:
    request = Request(id=1, method=method, params=params, version=version)
    return await (at or endpoint()).answer(request, deadline=time.monotonic() + 10)


def many(folder: Path, count: int) -> Path:
    """A project of that many agents, all the same."""
    agent = EXAMPLES.parent / "agents" / "echo.py"
    (folder / "echo.py").write_bytes(agent.read_bytes())
    graphs = {f"agent-{number}": "./echo.py:graph" for number in range(count)}
    config = folder / "langgraph.json"
    config.write_text(json.dumps({"graphs": graphs}))
    return config


async def test_discover_tells_versions_and_capabilities_and_how_long_they_hold() -> None:
    result = await answer("server/discover")
    assert result["supportedVersions"] == list(SUPPORTED)
    assert result["capabilities"] == {"tools": {}, "logging": {}}
    assert (result["ttlMs"], result["cacheScope"]) == (5, "public")
    mcp_types.DiscoverResult.model_validate(result)


async def test_a_list_that_depends_on_the_caller_is_private() -> None:
    result = await answer("tools/list", at=endpoint(private=True))
    assert result["cacheScope"] == "private"


@pytest.mark.parametrize("method", ["server/discover", "tools/list"])
async def test_every_result_of_the_newest_revision_says_its_type_and_its_server(
    method: str,
) -> None:
    result = await answer(method)
    assert result["resultType"] == "complete"
    assert result["_meta"] == {SERVER_INFO_KEY: {"name": "agents", "version": "1.2.3"}}


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_an_older_client_sees_nothing_of_the_newest_revision(version: str) -> None:
    listed = await answer("tools/list", version)
    assert set(listed) == {"tools"}
    assert await answer("ping", version) == {}


async def test_tools_are_listed_in_the_order_of_the_file_in_both_eras() -> None:
    names = list(json.loads(EXAMPLES.read_text())["graphs"])
    for version in (LATEST, HANDSHAKE[0]):
        result = await answer("tools/list", version)
        assert [tool["name"] for tool in result["tools"]] == names
        assert all(tool["description"] for tool in result["tools"])
        assert all(tool["inputSchema"]["type"] == "object" for tool in result["tools"])
        mcp_types.ListToolsResult.model_validate(result)


async def test_a_long_list_comes_in_pages(tmp_path: Path) -> None:
    at = endpoint(many(tmp_path, 2 * PAGE + 1))
    names: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(3):
        page = await answer("tools/list", at=at, **cursor)
        names += [tool["name"] for tool in page["tools"]]
        cursor = {"cursor": page.get("nextCursor", "")}
    assert names == [f"agent-{number}" for number in range(2 * PAGE + 1)]
    assert cursor == {"cursor": ""}


@pytest.mark.parametrize("cursor", ["", "0", "-1", "7", "99999999999", "²", "x"])
async def test_a_cursor_that_was_never_given_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidParams, match="Invalid cursor"):
        await answer("tools/list", cursor=cursor)


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_initialize_agrees_on_the_revision_that_is_proposed(version: str) -> None:
    result = await answer("initialize", version, protocolVersion=version)
    assert result["protocolVersion"] == version
    assert result["serverInfo"] == {"name": "agents", "version": "1.2.3"}
    mcp_types.InitializeResult.model_validate(result)


@pytest.mark.parametrize("version", [LATEST, "2099-01-01", "x"])
async def test_initialize_offers_its_newest_revision_for_any_other(version: str) -> None:
    result = await answer("initialize", HANDSHAKE[0], protocolVersion=version)
    assert result["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize(
    ("method", "version"),
    [
        *((method, LATEST) for method in ("initialize", "ping", "logging/setLevel", "", "tools")),
        *((method, LATEST) for method in ("prompts/list", "resources/list", "tasks/get")),
        ("server/discover", HANDSHAKE[0]),
        ("subscriptions/listen", LATEST),
        ("completion/complete", HANDSHAKE[0]),
    ],
)
async def test_a_method_of_another_era_or_of_none_is_not_found(method: str, version: str) -> None:
    with pytest.raises(MethodNotFound):
        await answer(method, version)


@pytest.mark.parametrize("version", [LATEST, HANDSHAKE[0]])
@pytest.mark.parametrize("name", ["nobody", "", "Greeter"])
async def test_an_unknown_tool_is_refused(name: str, version: str) -> None:
    with pytest.raises(InvalidParams, match="Unknown tool"):
        await answer("tools/call", version, name=name)


async def test_a_request_state_sent_with_the_name_of_no_tool_is_refused_as_one() -> None:
    with pytest.raises(InvalidParams, match="^Invalid or expired requestState$"):
        await answer("tools/call", LATEST, name="nobody", requestState="x", inputResponses={})


@pytest.mark.parametrize("version", [LATEST, HANDSHAKE[0]])
async def test_arguments_that_do_not_fit_end_in_a_result_that_names_the_field(version: str) -> None:
    result = await answer("tools/call", version, name="echo", arguments={"message": 5})
    assert result["isError"] is True
    assert "message" in result["content"][0]["text"]
    assert ("resultType" in result) == (version == LATEST)
