"""Graphs of the shapes that people write: each question once, each answer to its own question."""

import json
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from core.errors import InvalidParams
from core.protocol import InputRequired
from tests.agents import shapes
from tests.conversation import Instance, accept, instance, messages, said

pytestmark = pytest.mark.anyio


async def test_an_entrypoint_asks_once_and_its_finished_tasks_do_not_run_again(
    here: Instance,
) -> None:
    asked = await here.asks("functional")
    assert messages(asked) == ["Ship?"]
    result = await here.ends("functional", accept(asked, Ship="yes"), asked.request_state)
    assert said(result) == '{"all":"charged yes shipped"}'
    assert here.ran() == {"charge": 1, "confirm?": 2, "confirm": 1, "ship": 1}


async def test_a_loop_that_asks_the_same_text_has_one_key_and_a_state_for_each_round(
    here: Instance,
) -> None:
    rounds = [await here.asks("looping")]
    for answer in ("abc", "-1"):
        newest = rounds[-1]
        rounds.append(await here.asks("looping", accept(newest, Age=answer), newest.request_state))
    assert len({tuple(each.requests) for each in rounds}) == 1
    assert len({each.request_state for each in rounds}) == 3
    stale = await here.asks("looping", accept(rounds[0], Age="abc"), rounds[0].request_state)
    assert stale == rounds[1], "a repeat is told its own round's outcome"
    with pytest.raises(InvalidParams):
        await here.call("looping", accept(rounds[0], Age="42"), rounds[0].request_state)
    result = await here.ends("looping", accept(rounds[2], Age="42"), rounds[2].request_state)
    assert '"age=42"' in said(result)
    assert here.ran()["age"] == 1


@pytest.mark.parametrize("agent", ["deep", "calling_twice"])
async def test_questions_of_subgraphs_come_one_after_the_other_and_each_answer_is_used_once(
    here: Instance, agent: str
) -> None:
    asked = await here.asks(agent)
    given: list[str] = []
    while True:
        (question,) = messages(asked)
        given.append(f"{question[6].lower()}{len(given)}")
        answer = await here.call(
            agent, accept(asked, **{question[:5]: given[-1]}), asked.request_state
        )
        if not isinstance(answer, InputRequired):
            break
        asked = answer
    assert given == (["a0", "b1"] if agent == "deep" else ["a0", "b1", "a2", "b3"])
    for each in given:
        assert said(answer).count(f"={each}") == 1
    calls = len(given) // 2
    assert (here.ran()["inner_first"], here.ran()["inner_second"]) == (calls, calls)


@pytest.mark.parametrize("agent", ["calling_persistent", "visiting_persistent"])
async def test_a_subgraph_that_keeps_its_state_goes_on_in_another_process_as_in_langgraph(
    database: str, tmp_path: Path, agent: str
) -> None:
    """Every round is served by an instance of its own; LangGraph itself runs it in one."""
    graph = getattr(shapes, agent).compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    expected = await graph.ainvoke({"journal": str(tmp_path)}, config)
    async with instance(database, tmp_path) as first:
        asked = await first.asks(agent)
    for number in "123":
        [interrupt] = expected["__interrupt__"]
        assert messages(asked) == [interrupt.value]
        expected = await graph.ainvoke(Command(resume={interrupt.id: number}), config)
        async with instance(database, tmp_path) as other:
            asked = await other.asks(agent, accept(asked, Inner=number), asked.request_state)
    [interrupt] = expected["__interrupt__"]
    expected = await graph.ainvoke(Command(resume={interrupt.id: "4"}), config)
    async with instance(database, tmp_path) as last:
        result = await last.ends(agent, accept(asked, Inner="4"), asked.request_state)
    assert json.loads(said(result)) == expected


async def test_equal_questions_of_a_fan_out_of_subgraphs_are_answered_together(
    here: Instance,
) -> None:
    first = await here.asks("spreading")
    assert messages(first) == ["Inner A?"]
    second = await here.asks("spreading", accept(first, Inner="a"), first.request_state)
    assert messages(second) == ["Inner B?"]
    result = await here.ends("spreading", accept(second, Inner="b"), second.request_state)
    assert said(result).count("inner_first=a") == said(result).count("inner_second=b") == 2


async def test_an_interrupt_that_the_agent_swallows_is_the_agents_own_mistake(
    here: Instance,
) -> None:
    assert '"swallowed GraphInterrupt"' in said(await here.ends("swallowing"))


async def test_the_attempts_of_a_node_that_is_retried_take_one_answer(here: Instance) -> None:
    asked = await here.asks("retrying")
    result = await here.ends("retrying", accept(asked, Flaky="yes"), asked.request_state)
    assert '"flaky=yes"' in said(result)
    assert here.ran() == {"attempt": 3}


async def test_a_node_that_jumps_by_a_command_leads_to_the_next_question(here: Instance) -> None:
    first = await here.asks("jumping")
    second = await here.asks("jumping", accept(first, Where="there"), first.request_state)
    result = await here.ends("jumping", accept(second, Landed="yes"), second.request_state)
    assert '["jump=there","landing=yes"]' in said(result)


@pytest.mark.parametrize("first", [True, False])
async def test_what_a_node_does_to_the_state_before_it_asks_is_forgotten_as_in_langgraph(
    here: Instance, first: bool
) -> None:
    asked = await here.asks("scribbling")
    answers = accept(asked, Go="yes")
    state = None if first else asked.request_state
    assert '["filled","scribbled","yes"]' in said(await here.ends("scribbling", answers, state))


async def test_graphs_that_keep_nothing_run_after_a_question_as_before_it(here: Instance) -> None:
    asked = await here.asks("keeping_nothing")
    result = await here.ends("keeping_nothing", accept(asked, Go="yes"), asked.request_state)
    assert not result.is_error, said(result)
    assert here.ran() == {"ask?": 2, "ask": 1, "work": 3}


def decide(asked: InputRequired, *decisions: dict[str, Any]) -> dict[str, Any]:
    return {
        key: {"action": "accept", "content": decision}
        for key, decision in zip(sorted(asked.requests), decisions, strict=True)
    }


async def review(here: Instance, agent: str) -> InputRequired:
    human = [{"role": "user", "content": str(here.journal)}]
    asked = await here.asks(agent, arguments={"messages": human})
    assert len(asked.requests) == 2, "two mails are reviewed, the look is not"
    return asked


async def settle(here: Instance, agent: str, asked: InputRequired, answers: dict[str, Any]) -> str:
    human = [{"role": "user", "content": str(here.journal)}]
    return said(await here.ends(agent, answers, asked.request_state, arguments={"messages": human}))


@pytest.mark.parametrize("agent", ["batched", "per_call"])
async def test_of_two_equal_calls_one_is_approved_and_the_other_rejected(
    here: Instance, agent: str
) -> None:
    asked = await review(here, agent)
    assert here.ran().get("send:a@example.com") is None
    answers = decide(asked, {"decision": "approve"}, {"decision": "reject", "message": "no"})
    text = await settle(here, agent, asked, dict(reversed(answers.items())))
    assert here.ran() == {"look": 1, "send:a@example.com": 1}
    tools = [m for m in json.loads(text)["messages"] if m["type"] == "tool"]
    assert sorted(m["tool_call_id"] for m in tools) == ["1", "2", "3"]
    assert next(m for m in tools if m["tool_call_id"] == "1")["content"] == "sent to a@example.com"
    assert "no" in next(m for m in tools if m["tool_call_id"] == "3")["content"]


@pytest.mark.parametrize("agent", ["batched", "per_call"])
async def test_an_edited_call_runs_once_as_edited(here: Instance, agent: str) -> None:
    asked = await review(here, agent)
    edited = json.dumps({"journal": str(here.journal), "to": "b@example.com"})
    answers = decide(asked, {"decision": "edit", "args": edited}, {"decision": "reject"})
    await settle(here, agent, asked, answers)
    assert here.ran() == {"look": 1, "send:b@example.com": 1}


@pytest.mark.parametrize("agent", ["batched", "per_call"])
async def test_a_declined_review_is_a_rejection_and_the_agent_goes_on(
    here: Instance, agent: str
) -> None:
    asked = await review(here, agent)
    await settle(here, agent, asked, {key: {"action": "decline"} for key in asked.requests})
    assert here.ran() == {"look": 1}


async def test_an_edit_that_breaks_the_tools_types_is_refused_in_per_call_mode(
    here: Instance,
) -> None:
    asked = await review(here, "per_call")
    answers = decide(asked, {"decision": "edit", "args": "{}"}, {"decision": "approve"})
    with pytest.raises(InvalidParams, match="The decision does not fit the tool: .* is a required"):
        await settle(here, "per_call", asked, answers)
    assert not [node for node in here.ran() if node.startswith("send")]


async def test_two_asking_tools_of_one_task_are_refused_rather_than_guessed_at(
    here: Instance,
) -> None:
    result = await here.ends("shared_tools")
    assert result.is_error
    assert said(result).startswith("This tool needs input that can't be asked over MCP")
    assert here.ran() == {}
