"""Rounds: what runs, what is stored and what is told, request by request, on a real database."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.cannot_ask import BREAKPOINT, PREFIX
from core.errors import InvalidParams, InvalidRequestState, MissingCapability
from core.rounds import CANNOT_ANSWER, OTHER_ANSWERS
from tests.conversation import Instance, accept, catalog, instance, messages, said
from tests.tables import LANGGRAPHS, OURS, rows

pytestmark = pytest.mark.anyio

NOTHING = dict.fromkeys((*OURS, *LANGGRAPHS), 0)


async def test_a_call_that_never_asks_leaves_no_row(here: Instance, database: str) -> None:
    result = await here.ends("done")
    assert said(result).endswith('"answers":["work"]}')
    assert rows(database) == NOTHING


async def test_a_call_pauses_and_another_instance_resumes_it(here: Instance, database: str) -> None:
    asked = await here.asks("one")
    assert here.ran() == {"before": 1, "ask?": 1}
    async with instance(database, here.journal) as there:
        result = await there.ends("one", accept(asked, Go="yes"), asked.request_state)
    assert '"answers":["before","ask=yes"]' in said(result)
    assert here.ran() == {"before": 1, "ask?": 2, "ask": 1}


async def test_repeating_the_last_answers_gives_the_result_and_runs_nothing(here: Instance) -> None:
    asked = await here.asks("one")
    answers = accept(asked, Go="yes")
    first = await here.ends("one", answers, asked.request_state)
    ran = here.ran()
    assert [await here.ends("one", answers, asked.request_state) for _ in range(3)] == [first] * 3
    assert here.ran() == ran


async def test_repeating_round_one_after_round_two_was_asked_gives_round_two_again(
    here: Instance,
) -> None:
    first = await here.asks("same")
    answers = accept(first, Sure="yes")
    second = await here.asks("same", answers, first.request_state)
    assert list(second.requests) == list(first.requests), "one question, one key"
    assert second.request_state != first.request_state
    ran = here.ran()
    assert await here.asks("same", answers, first.request_state) == second
    assert here.ran() == ran
    result = await here.ends("same", accept(second, Sure="no"), second.request_state)
    assert '["first=yes","second=no"]' in said(result)
    assert await here.asks("same", answers, first.request_state) == second
    assert await here.ends("same", accept(second, Sure="no"), second.request_state) == result


async def test_other_answers_to_a_settled_round_are_refused(here: Instance) -> None:
    asked = await here.asks("one")
    await here.ends("one", accept(asked, Go="yes"), asked.request_state)
    ran = here.ran()
    with pytest.raises(InvalidParams, match=OTHER_ANSWERS):
        await here.call("one", accept(asked, Go="no"), asked.request_state)
    with pytest.raises(InvalidParams, match=OTHER_ANSWERS):
        await here.call(
            "one", {key: {"action": "decline"} for key in asked.requests}, asked.request_state
        )
    assert here.ran() == ran


async def test_several_questions_are_asked_in_one_round(here: Instance) -> None:
    asked = await here.asks("pair")
    assert sorted(messages(asked)) == ["Left?", "Right?"]
    result = await here.ends("pair", accept(asked, Left="l", Right="r"), asked.request_state)
    assert '["left=l","right=r"]' in said(result)
    assert here.ran() == {"left?": 2, "right?": 2, "left": 1, "right": 1}


@pytest.mark.parametrize("given", [{}, {"Left": "l"}, {"Right": "r"}])
async def test_missing_answers_ask_the_same_questions_again_with_the_same_state(
    here: Instance, given: dict[str, str]
) -> None:
    asked = await here.asks("pair")
    ran = here.ran()
    answers = {**accept(asked, **given), "undefined": {"action": "accept"}, "": {}}
    assert await here.asks("pair", answers, asked.request_state) == asked
    assert await here.asks("pair", None, asked.request_state) == asked
    assert here.ran() == ran
    await here.ends("pair", accept(asked, Left="l", Right="r"), asked.request_state)


async def test_an_invalid_answer_keeps_the_round_open(here: Instance) -> None:
    asked = await here.asks("one")
    ran = here.ran()
    for wrong in (5, None, ["yes"]):
        with pytest.raises(InvalidParams, match="Form content does not match requestedSchema"):
            await here.call("one", accept(asked, Go={"response": wrong}), asked.request_state)
    assert here.ran() == ran
    assert '"ask=yes"' in said(await here.ends("one", accept(asked, Go="yes"), asked.request_state))


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ("decline", "The request for input was declined."),
        ("cancel", "The request for input was cancelled."),
    ],
)
async def test_a_refused_question_ends_the_call_and_is_told_again(
    here: Instance, action: str, text: str
) -> None:
    asked = await here.asks("one")
    ran = here.ran()
    answers = {key: {"action": action} for key in asked.requests}
    result = await here.ends("one", answers, asked.request_state)
    assert result.is_error
    assert said(result) == text
    assert await here.ends("one", answers, asked.request_state) == result
    with pytest.raises(InvalidParams, match=OTHER_ANSWERS):
        await here.call("one", accept(asked, Go="yes"), asked.request_state)
    assert here.ran() == ran


async def test_answers_in_the_first_call_answer_the_first_round_only(
    here: Instance, database: str
) -> None:
    first = await here.asks("same")
    fresh = await here.asks("same", accept(first, Sure="yes"))
    assert list(fresh.requests) == list(first.requests)
    result = await here.ends("same", accept(fresh, Sure="no"), fresh.request_state)
    assert '["first=yes","second=no"]' in said(result)


async def test_answers_in_the_first_call_leave_no_row_when_they_end_it(
    here: Instance, database: str
) -> None:
    key = next(iter((await here.asks("one")).requests))
    kept = rows(database)
    assert '"ask=yes"' in said(
        await here.ends("one", {key: {"action": "accept", "content": {"response": "yes"}}})
    )
    assert said(await here.ends("one", {key: {"action": "decline"}})) == (
        "The request for input was declined."
    )
    with pytest.raises(InvalidParams):
        await here.call("one", {key: {"action": "accept", "content": {"response": 5}}})
    assert rows(database) == kept


async def test_a_first_call_with_only_some_answers_asks_all_questions(here: Instance) -> None:
    asked = await here.asks("pair")
    again = await here.asks("pair", accept(asked, Left="l"))
    assert again.requests == asked.requests
    result = await here.ends("pair", accept(again, Left="L", Right="R"), again.request_state)
    assert '["left=L","right=R"]' in said(result)


async def test_an_agent_that_fails_ends_the_call_without_telling_its_inside(
    here: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    asked = await here.asks("failing")
    answers = accept(asked, Fail="hunter2")
    result = await here.ends("failing", answers, asked.request_state)
    assert result.is_error
    assert "hunter2" not in said(result) + caplog.text
    assert "RuntimeError" in caplog.text
    assert await here.ends("failing", answers, asked.request_state) == result


async def test_two_equal_questions_of_a_fan_out_share_a_key_and_one_answer(here: Instance) -> None:
    asked = await here.asks("fanned")
    assert sorted(messages(asked)) == ["Item c?", "Item x?"]
    result = await here.ends(
        "fanned", accept(asked, **{"Item c": "C", "Item x": "X"}), asked.request_state
    )
    assert '["a=X","b=X","c=C"]' in said(result)


async def test_a_node_that_asks_twice_asks_in_two_rounds(here: Instance) -> None:
    first = await here.asks("twice")
    second = await here.asks("twice", accept(first, Name="Ada"), first.request_state)
    assert messages(second) == ["Colour?"]
    result = await here.ends("twice", accept(second, Colour="red"), second.request_state)
    assert '["Ada=red"]' in said(result)


@pytest.mark.parametrize("agent", ["nested", "called", "called_sync", "called_blocking"])
async def test_a_subgraph_asks_one_question_after_the_other_beside_its_siblings(
    here: Instance, agent: str
) -> None:
    first = await here.asks(agent)
    assert sorted(messages(first)) == ["Inner A?", "Right?"]
    answers = accept(first, **{"Inner A": "a", "Right": "r"})
    second = await here.asks(agent, answers, first.request_state)
    assert messages(second) == ["Inner B?"]
    result = await here.ends(agent, accept(second, **{"Inner B": "b"}), second.request_state)
    for answer in ("right=r", "inner_first=a", "inner_second=b"):
        assert said(result).count(answer) == 1
    ran = here.ran()
    assert (ran["inner_first"], ran["inner_second"], ran["right"]) == (1, 1, 1)


async def test_an_answer_that_only_the_node_can_judge_may_be_corrected(here: Instance) -> None:
    asked = await here.asks("choosy_alone")
    with pytest.raises(InvalidParams, match="Form content does not match") as refusal:
        await here.call("choosy_alone", accept(asked, How={"number": 3}), asked.request_state)
    [key] = asked.requests
    assert refusal.value.data == {
        "errors": [
            {"key": key, "field": "number", "reason": "Value error, an even number is needed"}
        ]
    }
    result = await here.ends("choosy_alone", accept(asked, How={"number": 4}), asked.request_state)
    assert '"picky=4"' in said(result)


async def test_an_answer_without_a_field_of_its_own_that_only_the_node_can_judge_is_told_by_ours(
    here: Instance,
) -> None:
    asked = await here.asks("choosy_word")
    with pytest.raises(InvalidParams) as refusal:
        await here.call("choosy_word", accept(asked, Which="odd"), asked.request_state)
    [key] = asked.requests
    assert refusal.value.data == {
        "errors": [{"key": key, "field": "response", "reason": "Value error, not odd"}]
    }


async def test_an_answer_of_a_first_call_that_only_the_node_can_judge_is_refused_too(
    here: Instance, database: str
) -> None:
    key = next(iter((await here.asks("choosy_alone")).requests))
    kept = rows(database)
    answer = {key: {"action": "accept", "content": {"number": 3}}}
    with pytest.raises(InvalidParams, match="Form content does not match"):
        await here.call("choosy_alone", answer)
    assert rows(database) == kept


async def test_a_sibling_of_a_corrected_answer_does_not_run_again(here: Instance) -> None:
    asked = await here.asks("choosy")
    with pytest.raises(InvalidParams) as refusal:
        await here.call("choosy", accept(asked, How={"number": 3}, Right="r"), asked.request_state)
    told = {"field": "number", "reason": "Value error, an even number is needed"}
    assert refusal.value.data == {"errors": [told]}
    assert here.ran()["right"] == 1
    result = await here.ends(
        "choosy", accept(asked, How={"number": 4}, Right="r"), asked.request_state
    )
    assert '"picky=4"' in said(result)
    assert '"right=r"' in said(result)
    assert (here.ran()["right"], here.ran()["picky"]) == (1, 1)


async def test_an_agent_that_asks_for_langgraphs_store_gets_one_that_outlives_its_calls(
    here: Instance,
) -> None:
    for known, told in (("nothing", "tea"), ("tea", "milk")):
        asked = await here.asks("remembering")
        result = await here.ends("remembering", accept(asked, Remember=told), asked.request_state)
        assert f'"answers":["{known}"]' in said(result)


# Clients that can't be asked.


async def test_an_older_client_is_told_the_questions_and_nothing_is_kept(
    here: Instance, database: str
) -> None:
    result = await here.ends("pair", modern=False, modes=frozenset())
    assert result.is_error
    assert result.content[0]["text"] == CANNOT_ANSWER
    assert "Left?" in result.content[1]["text"]
    assert rows(database) == NOTHING


async def test_a_client_without_elicitation_is_told_what_is_needed_and_nothing_is_kept(
    here: Instance, database: str
) -> None:
    with pytest.raises(MissingCapability) as refusal:
        await here.call("one", modes=frozenset())
    assert refusal.value.as_error() == {
        "code": -32021,
        "message": "This tool asks for human input and needs form elicitation.",
        "data": {"requiredCapabilities": {"elicitation": {"form": {}}}},
    }
    assert rows(database) == NOTHING


async def test_a_retry_without_the_capability_leaves_the_round_open(here: Instance) -> None:
    asked = await here.asks("one")
    answers = accept(asked, Go="yes")
    with pytest.raises(MissingCapability):
        await here.call("one", answers, asked.request_state, modes=frozenset({"url"}))
    await here.ends("one", answers, asked.request_state)


async def test_a_later_round_that_the_client_cannot_show_waits_for_one_that_can(
    here: Instance,
) -> None:
    form = frozenset({"form"})
    first = await here.asks("url_later", modes=form)
    answers = accept(first, Form="yes")
    for _ in range(2):
        with pytest.raises(MissingCapability) as refusal:
            await here.call("url_later", answers, first.request_state, modes=form)
        assert refusal.value.message == "This tool asks for human input and needs url elicitation."
    ran = here.ran()
    second = await here.asks("url_later", answers, first.request_state)
    assert here.ran() == ran
    assert second.requests["page"]["params"]["url"] == "https://example.com/a"
    result = await here.ends("url_later", {"page": {"action": "accept"}}, second.request_state)
    assert '"yes:accept"' in said(result)


async def test_a_static_breakpoint_is_an_error_for_a_client_that_can_be_asked(
    here: Instance, database: str
) -> None:
    assert said(await here.ends("breakpoint_before")) == f"{PREFIX}. {BREAKPOINT}"
    for client in ({"modes": frozenset[str]()}, {"modes": frozenset[str](), "modern": False}):
        result = await here.ends("breakpoint_before", **client)
        assert not result.is_error
        assert '"journal"' in said(result)
    assert rows(database) == NOTHING


async def test_a_graph_with_nothing_left_to_do_is_at_no_breakpoint(here: Instance) -> None:
    asked = await here.asks("breakpoint_last")
    result = await here.ends("breakpoint_last", accept(asked, Go="yes"), asked.request_state)
    assert not result.is_error
    assert '["ask=yes","work"]' in said(result)


async def test_at_a_breakpoint_the_state_is_told_whatever_the_output_would_be(
    here: Instance,
) -> None:
    result = await here.ends("breakpoint_apart", modes=frozenset[str]())
    assert not result.is_error
    assert json.loads(said(result))["journal"] == str(here.journal)
    tool = await catalog.tool("breakpoint_apart")
    assert tool is not None
    assert tool.output_schema is None, "a client would drop what does not fit"


# Request states.


@pytest.mark.parametrize(
    "change",
    [
        {"arguments": {"journal": "elsewhere"}},
        {"principal": "somebody else"},
    ],
)
async def test_a_state_of_other_circumstances_is_refused_and_the_round_stays(
    here: Instance, change: dict[str, Any]
) -> None:
    asked = await here.asks("one")
    answers = accept(asked, Go="yes")
    with pytest.raises(InvalidRequestState):
        await here.call("one", answers, asked.request_state, **change)
    with pytest.raises(InvalidRequestState):
        await here.call("two", answers, asked.request_state)
    with pytest.raises(InvalidRequestState):
        await here.call("one", answers, asked.request_state + "x")
    await here.ends("one", answers, asked.request_state)


async def test_keys_rotate_while_a_call_is_paused(database: str, tmp_path: Path) -> None:
    old, new = "old-key-0123456789-abcdefghijklmnop", "new-key-0123456789-abcdefghijklmnop"
    async with instance(database, tmp_path, keys=(old,)) as before:
        first = await before.asks("two")
        answers = accept(first, First="1")
    async with instance(database, tmp_path, keys=(new, old)) as both:
        second = await both.asks("two", answers, first.request_state)
        assert await both.asks("two", answers, first.request_state) == second
    async with instance(database, tmp_path, keys=(new,)) as after:
        result = await after.ends("two", accept(second, Second="2"), second.request_state)
        assert '["first=1","second=2"]' in said(result)
        with pytest.raises(InvalidRequestState):
            await after.call("two", answers, first.request_state)


async def test_a_state_of_another_deployment_is_refused(database: str, tmp_path: Path) -> None:
    async with (
        instance(database, tmp_path, audience="https://a.example/mcp") as a,
        instance(database, tmp_path, audience="https://b.example/mcp") as b,
    ):
        asked = await a.asks("one")
        with pytest.raises(InvalidRequestState):
            await b.call("one", accept(asked, Go="yes"), asked.request_state)
