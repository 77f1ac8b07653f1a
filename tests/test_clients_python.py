"""The Python clients that people use, over real HTTP.

Every call goes through a front with two processes behind it, and each of a call's rounds meets the
other one.
"""

from collections.abc import Mapping

import httpx
import mcp_types
import pytest
from fastmcp import Client as FastMcpClient
from mcp import Client, MCPError

from core.protocol import LATEST
from tests.front import Front
from tests.people import Call, accepting, fastmcp, never, official, refusing, shown

pytestmark = pytest.mark.anyio

ASKABLE: Mapping[str, Call] = {
    "official": official(LATEST),
    "official-auto": official("auto"),
    "fastmcp": fastmcp("auto"),
}
OLDER: Mapping[str, Call] = {"official": official("legacy"), "fastmcp": fastmcp("legacy")}

askable = pytest.mark.parametrize("call", ASKABLE.values(), ids=list(ASKABLE))
older = pytest.mark.parametrize("call", OLDER.values(), ids=list(OLDER))
anybody = pytest.mark.parametrize(
    "call",
    [*ASKABLE.values(), *OLDER.values()],
    ids=[*ASKABLE, *(f"{name}-older" for name in OLDER)],
)


def took_turns(front: Front, rounds: int) -> bool:
    """Whether the last calls each met the other process."""
    last = front.calls[-rounds:]
    return all(one != other for one, other in zip(last, last[1:], strict=False))


# Clients that can be asked.


@askable
async def test_an_accepted_answer_resumes_the_agent_on_the_other_process(
    front: Front, call: Call
) -> None:
    person = accepting(Which="eu-west-1")
    told = await call(front.url, person, "region", {})
    assert told.output == {"region": "eu-west-1"}
    assert person.messages() == ["Which region should the service deploy to?"]
    assert took_turns(front, 2)


@askable
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_refused_text_question_ends_the_call(front: Front, call: Call, action: str) -> None:
    told = await call(front.url, refusing(action), "region", {})
    past = {"decline": "declined", "cancel": "cancelled"}[action]
    assert told.is_error
    assert told.texts == (f"The request for input was {past}.",)


@askable
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_an_agent_decides_what_a_refused_relayed_question_means(
    front: Front, call: Call, action: str
) -> None:
    told = await call(front.url, refusing(action), "greeter", {})
    assert told.output == {"greeting": "Hello, stranger!"}


@askable
async def test_a_form_is_answered_with_what_its_fields_hold(front: Front, call: Call) -> None:
    person = accepting({"region": "eu-west-1", "replicas": 3})
    told = await call(front.url, person, "deployment", {})
    assert told.output == {"region": "eu-west-1", "replicas": 3}


@askable
async def test_a_page_is_opened_and_confirmed(front: Front, call: Call) -> None:
    person = accepting()
    told = await call(front.url, person, "calendar", {})
    assert told.output == {"status": "connected"}
    (page,) = person.asked
    assert isinstance(page, mcp_types.ElicitRequestURLParams)
    assert page.url == "https://example.com/oauth/calendar/start"


@askable
async def test_several_rounds_are_asked_one_after_another(front: Front, call: Call) -> None:
    person = accepting(What="tea", How=5, Why="warm")
    told = await call(front.url, person, "survey", {})
    assert told.output == {"topic": "tea", "rating": 5, "reason": "warm"}
    assert person.messages()[-1] == "Why 5 for tea?"
    assert took_turns(front, 4)


@askable
async def test_parallel_questions_are_asked_in_one_round(front: Front, call: Call) -> None:
    before = len(front.calls)
    person = accepting(What_goes_on_the_left="salt", What_goes_on_the_right="pepper")
    told = await call(front.url, person, "pair", {})
    assert told.output["pair"] == "salt | pepper"
    assert len(front.calls) - before == 2


async def test_the_official_client_is_told_of_a_wrong_answer_by_its_code(front: Front) -> None:
    person = accepting({"region": "eu-west-1", "replicas": 20})
    told = await official(LATEST)(front.url, person, "deployment", {})
    assert told.code == -32602
    assert told.texts == ("Form content does not match requestedSchema",)


async def test_fastmcp_lets_no_wrong_answer_out(front: Front) -> None:
    before = len(front.calls)
    person = accepting({"region": "eu-west-1", "replicas": 20})
    told = await fastmcp("auto")(front.url, person, "deployment", {})
    assert told.code == -32603
    assert len(front.calls) - before == 1


async def test_a_client_that_declares_nothing_is_told_what_is_needed(front: Front) -> None:
    async with Client(front.url, mode=LATEST) as client:
        with pytest.raises(MCPError) as refused:
            await client.call_tool("region", {})
    assert refused.value.error.code == -32021
    assert refused.value.error.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}


async def test_a_corrected_answer_goes_through_with_the_same_state(front: Front) -> None:
    async with Client(front.url, mode=LATEST, elicitation_callback=never) as client:
        asked = await client.session.call_tool("deployment", {}, allow_input_required=True)
        assert isinstance(asked, mcp_types.InputRequiredResult)
        (key,) = asked.input_requests or {}

        async def answer(replicas: int) -> object:
            accepted = mcp_types.ElicitResult(
                action="accept", content={"region": "eu-west-1", "replicas": replicas}
            )
            return await client.session.call_tool(
                "deployment",
                {},
                input_responses={key: accepted},
                request_state=asked.request_state,
                allow_input_required=True,
            )

        with pytest.raises(MCPError, match="does not match"):
            await answer(20)
        ended = await answer(3)
    assert isinstance(ended, mcp_types.CallToolResult)
    assert shown(ended).output == {"region": "eu-west-1", "replicas": 3}


# Clients of any revision.


@anybody
async def test_an_agents_failure_is_an_error_result_without_its_inside(
    front: Front, call: Call
) -> None:
    told = await call(front.url, refusing("cancel"), "failing", {})
    (text,) = told.texts
    assert told.is_error
    assert text.startswith("failing failed (error ")


@anybody
async def test_an_unknown_tool_is_an_error_of_the_protocol(front: Front, call: Call) -> None:
    told = await call(front.url, refusing("cancel"), "nobody", {})
    assert told.code == -32602
    assert told.texts == ("Unknown tool: nobody",)


@anybody
async def test_declared_output_comes_as_structured_content(front: Front, call: Call) -> None:
    told = await call(front.url, refusing("cancel"), "echo", {"message": "é"})
    assert told.output == told.structured == {"echo": "é"}


@anybody
async def test_arguments_that_do_not_fit_are_told_by_field(front: Front, call: Call) -> None:
    told = await call(front.url, refusing("cancel"), "echo", {"message": 5})
    assert told.is_error
    assert "message" in told.texts[0]


@older
async def test_an_older_client_that_is_asked_gets_the_two_texts(front: Front, call: Call) -> None:
    told = await call(front.url, refusing("cancel"), "region", {})
    first, second = told.texts
    assert told.is_error
    assert first == "This tool paused to ask for human input, and this client can't answer it."
    assert "Which region" in second


# What clients send and expect beside that.


@pytest.mark.parametrize("mode", [LATEST, "auto", "legacy"])
async def test_every_client_lists_every_tool(front: Front, mode: str) -> None:
    async with Client(front.url, mode=mode) as official, FastMcpClient(front.url) as fast:
        listed = await official.list_tools()
        names = [tool.name for tool in listed.tools]
        assert [tool.name for tool in await fast.list_tools()] == names
    assert {"region", "echo", "failing"} <= set(names)


@pytest.mark.parametrize("mode", [LATEST, "legacy"])
async def test_progress_reaches_the_callback_while_the_agent_runs(front: Front, mode: str) -> None:
    reports: list[tuple[float, float | None, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, total, message))

    async with Client(front.url, mode=mode) as client:
        result = await client.call_tool("telling", {}, progress_callback=report)
    assert not result.is_error
    assert [(progress, total) for progress, total, _ in reports] == [
        (0, 100),
        (50, 100),
        (100, 100),
    ]


@pytest.mark.parametrize("region", ["eu-west-1", " é ", "=?base64?SGVsbG8=?=", ""])
async def test_an_argument_that_a_header_repeats_arrives_whatever_it_holds(
    front: Front, region: str
) -> None:
    async with Client(front.url, mode=LATEST) as client:
        await client.list_tools()
        result = await client.call_tool("placed", {"region": region})
    assert shown(result).output == {"answer": region}


async def test_a_client_that_did_not_list_finds_out_about_the_header(front: Front) -> None:
    async with Client(front.url, mode=LATEST) as client:
        result = await client.call_tool("placed", {"region": "eu-west-1"})
    assert shown(result).output == {"answer": "eu-west-1"}


async def test_an_older_clients_stream_is_refused_at_once(front: Front) -> None:
    async with httpx.AsyncClient(timeout=5) as client:
        for method in ("GET", "DELETE"):
            response = await client.request(method, front.url)
            assert response.status_code == 405
