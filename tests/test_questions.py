"""From pending interrupts to questions and back: keys, rounds, answers, and real graphs."""

import asyncio
import itertools
import json
import operator
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict

from agents import deployment, pair, region, survey
from core.cannot_ask import PREFIX, CannotAsk
from core.canonical import digest
from core.errors import InvalidParams
from core.questions import Ended, Missing, Pending, Resume, Round, as_json, ask, read
from tests import strategies
from tests.calling import accept
from tests.dialogue import Dialogue, resumed

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "vectors.json").read_text(encoding="utf-8")
)

TEXT = VECTORS["text"]
TYPED = VECTORS["typed"]

REVIEW: dict[str, Any] = {
    "action_requests": [{"name": "t", "args": {"a": 1}, "description": "t {'a': 1}"}],
    "review_configs": [{"action_name": "t", "allowed_decisions": ["approve", "edit"]}],
}
RELAY: dict[str, Any] = {
    "type": "mcp_elicitation",
    "requests": [
        {"key": "page", "message": "Go.", "mode": "url", "url": "https://example.com/"},
        {
            "key": "form",
            "message": "Say.",
            "mode": "form",
            "requested_schema": {"type": "object", "properties": {"x": {"type": "string"}}},
        },
    ],
}


class Steps(TypedDict, total=False):
    steps: Annotated[list[Any], operator.add]


def pending(
    value: Any, schema: Any = None, *, id: str = "1", path: str = "", **more: Any
) -> Pending:
    return Pending(id=id, value=value, schema=schema, path=path, **more)


def refused(round: Round, responses: dict[str, Any]) -> InvalidParams:
    with pytest.raises(InvalidParams) as refusal:
        read(round, responses)
    assert refusal.value.code == -32602
    return refusal.value


def refusal(*interrupts: Pending) -> str:
    with pytest.raises(CannotAsk) as reason:
        ask(interrupts)
    assert str(reason.value).startswith(f"{PREFIX}. ")
    return str(reason.value)


def steps(*nodes: Any) -> Any:
    """A graph whose nodes all run side by side."""
    graph = StateGraph(Steps)
    for node in nodes:
        graph.add_node(node.__name__, node).add_edge(START, node.__name__)
    return graph.compile()


def asks(name: str, *questions: Any, schema: Any = None) -> Any:
    """A node that asks one question after another."""

    def node(state: Steps) -> Steps:
        return {"steps": [interrupt(each, response_schema=schema) for each in questions]}

    node.__name__ = name
    return node


# The reference's examples.


def test_a_string_is_asked_as_the_reference_prints_it() -> None:
    asked = ask([pending(TEXT["interrupt"])])
    wire = {TEXT["key"]: {"method": "elicitation/create", "params": TEXT["params"]}}
    assert json.dumps(asked.requests) == json.dumps(wire)
    assert asked.modes == {"form"}
    assert resumed(asked, {TEXT["key"]: TEXT["answer"]}) == {"1": TEXT["resume"]}


def test_a_schema_is_asked_as_the_reference_prints_it_and_a_wrong_answer_refused() -> None:
    asked = ask([pending(TYPED["interrupt"], TYPED["response_schema"])])
    wire = {TYPED["key"]: {"method": "elicitation/create", "params": TYPED["params"]}}
    assert json.dumps(asked.requests) == json.dumps(wire)
    assert resumed(asked, {TYPED["key"]: TYPED["answer"]}) == {"1": TYPED["answer"]["content"]}
    error = refused(asked, {TYPED["key"]: TYPED["bad_answer"]})
    assert error.message == TYPED["bad_error"]["message"]
    assert error.data == {
        "errors": [
            {
                "key": TYPED["key"],
                "field": "replicas",
                "reason": "20 is greater than the maximum of 10",
            }
        ]
    }


@pytest.mark.parametrize(
    ("action", "text"), [("decline", TEXT["declined"]), ("cancel", TEXT["cancelled"])]
)
def test_a_refusal_to_answer_ends_the_call_with_its_own_text(action: str, text: str) -> None:
    asked = ask([pending(TEXT["interrupt"])])
    contents: list[Any] = [None, {}, {"response": 5}, 5, "x"]
    for content in ({}, *({"content": content} for content in contents)):
        reading = read(asked, {TEXT["key"]: {"action": action, **content}})
        assert reading == Ended(text=text, answers={TEXT["key"]: {"action": action}})


# Keys.


def test_two_pending_questions_with_one_text_share_a_key_and_one_answer_resumes_both() -> None:
    asked = ask([pending("Same?", id="a"), pending("Same?", id="b"), pending("Other?", id="c")])
    same, other = asked.requests
    values = resumed(asked, {same: accept(response="x"), other: accept(response="y")})
    assert values == {"a": "x", "b": "x", "c": "y"}


def test_one_text_with_another_schema_is_another_question() -> None:
    asked = ask([pending("Same?", id="a"), pending("Same?", {"type": "boolean"}, id="b")])
    assert len(asked.requests) == 2
    text, boolean = (key for key in asked.requests)
    assert text == f"answer-{digest('Same?', {'type': 'string'})}"
    assert boolean == f"answer-{digest('Same?', {'type': 'boolean'})}"


def test_the_schema_of_a_key_is_the_one_that_was_raised() -> None:
    titled = {"type": "boolean", "title": "T"}
    [key] = ask([pending("Same?", titled)]).requests
    assert key == f"answer-{digest('Same?', titled)}"


def test_non_ascii_text_has_the_digest_of_its_characters() -> None:
    [key] = ask([pending("Größe 🙂?")]).requests
    assert key == f"answer-{digest('Größe 🙂?', {'type': 'string'})}"


def test_no_order_of_the_interrupts_changes_a_key_or_what_it_stands_for() -> None:
    interrupts = [
        pending(REVIEW, id="a", path="1"),
        pending(REVIEW, id="b", path="2"),
        pending(RELAY, id="c", path="3"),
        pending(RELAY, id="d", path="4"),
        pending("Same?", id="e", path="5"),
    ]
    rounds = [ask(order) for order in itertools.permutations(interrupts)]
    assert all(each == rounds[0] for each in rounds)
    assert len(rounds[0].requests) == 7


def test_an_interrupt_that_several_tasks_list_is_one_question_of_the_deepest() -> None:
    outer = pending("Q?", namespace="", task="t1", path="a")
    middle = pending("Q?", namespace="sub:t1", task="t2", path="a|b")
    inner = pending("Q?", namespace="sub:t1|1|in:t2", task="t3", path="a|b|c")
    for order in itertools.permutations([outer, middle, inner]):
        [only] = ask(order).asked
        assert (only.id, only.namespace, only.task) == ("1", "sub:t1|1|in:t2", "t3")
    assert len(ask([outer, inner, pending("Other?", id="2")]).asked) == 2


def test_a_single_interrupt_listed_twice_keeps_the_agent_s_own_keys() -> None:
    asked = ask([pending(RELAY, task="t1"), pending(RELAY, namespace="sub:t1", task="t2")])
    assert list(asked.requests) == ["page", "form"]


# What a round needs of its answers.


def test_a_question_without_an_answer_is_asked_again_and_no_other_is_judged() -> None:
    asked = ask([pending("A?", id="a"), pending("B?", {"type": "integer"}, id="b")])
    first, second = asked.requests
    assert isinstance(read(asked, {}), Missing)
    assert isinstance(read(asked, {first: {"action": "decline"}}), Missing)
    assert isinstance(read(asked, {second: accept(response="no integer")}), Missing)


def test_answers_to_what_was_not_asked_are_ignored_and_a_key_matches_exactly() -> None:
    asked = ask([pending(TEXT["interrupt"])])
    key, answer = TEXT["key"], TEXT["answer"]
    unknown: dict[str, Any] = {
        "undefined": "x",
        "": None,
        f"{key} ": answer,
        key.upper(): answer,
        "k": {},
    }
    assert isinstance(read(asked, unknown), Missing)
    assert resumed(asked, {**unknown, key: answer}) == {"1": TEXT["resume"]}


@pytest.mark.parametrize("response", [None, "yes", 5, True, [], [{"action": "accept"}], ["accept"]])
def test_an_answer_that_is_no_object_is_malformed(response: Any) -> None:
    asked = ask([pending("A?", id="a"), pending("B?", id="b")])
    [first, _] = asked.requests
    # Malformed is told before missing.
    assert first in refused(asked, {first: response}).message


@pytest.mark.parametrize("action", ["reject", "ACCEPT", "", " accept", None, 5, [], {}])
def test_an_action_that_is_none_of_the_three_is_malformed_and_they_are_named(action: Any) -> None:
    asked = ask([pending("A?")])
    [key] = asked.requests
    responses: list[Any] = [{"action": action, "content": {"response": "x"}}, {"content": {}}, {}]
    for response in responses:
        message = refused(asked, {key: response}).message
        for word in ("accept", "decline", "cancel"):
            assert f'"{word}"' in message


@pytest.mark.parametrize("content", ["x", 5, True, [], ["x"]])
def test_content_that_is_no_object_is_refused(content: Any) -> None:
    asked = ask([pending("A?")])
    [key] = asked.requests
    error = refused(asked, {key: {"action": "accept", "content": content}})
    assert error.message == "Form content does not match requestedSchema"


def test_an_accept_without_content_is_an_empty_form() -> None:
    needed = ask([pending("A?", {"type": "integer"})])
    [key] = needed.requests
    for response in ({"action": "accept"}, accept(), {"action": "accept", "content": None}):
        [error] = refused(needed, {key: response}).data["errors"]
        assert error["field"] == "response"
    optional = ask([pending("A?", {"type": "object", "properties": {"x": {"type": "boolean"}}})])
    [key] = optional.requests
    assert resumed(optional, {key: {"action": "accept"}}) == {"1": {}}


def test_other_members_of_an_answer_are_ignored() -> None:
    asked = ask([pending("A?")])
    [key] = asked.requests
    response = {**accept(response="x"), "resultType": "complete", "_meta": {"a": 1}}
    assert resumed(asked, {key: response}) == {"1": "x"}


def test_one_that_does_not_fit_is_told_before_a_decline_and_malformed_before_missing() -> None:
    asked = ask([pending("A?", id="a"), pending("B?", id="b"), pending("C?", id="c")])
    a, b, c = asked.requests
    declined, wrong, bad = {"action": "decline"}, accept(response=5), {"action": "maybe"}
    assert "maybe" not in refused(asked, {a: declined, b: wrong, c: declined}).message
    refused(asked, {a: wrong, c: bad})
    assert isinstance(read(asked, {a: declined, b: wrong}), Missing)
    ended = read(asked, {a: accept(response="x"), b: {"action": "cancel"}, c: declined})
    assert isinstance(ended, Ended)
    assert ended.text == TEXT["cancelled"]
    assert ended.answers == {
        a: {"action": "accept", "content": {"response": "x"}},
        b: {"action": "cancel"},
        c: {"action": "decline"},
    }


def test_answers_that_deliver_the_same_are_told_apart_from_no_other() -> None:
    asked = ask([pending("A?", {"type": "integer"})])
    [key] = asked.requests

    def record(response: dict[str, Any]) -> Any:
        reading = read(asked, {key: response})
        assert isinstance(reading, Ended | Resume)
        return reading.answers

    assert record(accept(response=3)) == record(accept(response=3.0, more=1))
    assert json.dumps(record(accept(response=3.0))) == json.dumps(record(accept(response=3)))
    assert record({"action": "decline"}) == record({"action": "decline", "content": {"x": 1}})
    assert record({"action": "decline"}) != record({"action": "cancel"})
    assert record(accept(response=3)) != record(accept(response=4))


# Values that are no strings.


def test_a_value_that_is_no_string_is_shown_as_json() -> None:
    class Draft(BaseModel):
        title: str
        due: date

    draft = Draft(title="Größe", due=date(2026, 8, 1))
    cases: list[tuple[Any, str]] = [
        ({"question": "Ship it?", "draft": "…"}, '{"question":"Ship it?","draft":"…"}'),
        ([1, None, True, 1.5], "[1,null,true,1.5]"),
        (None, "null"),
        (draft, '{"title":"Größe","due":"2026-08-01"}'),
        ({"nul": "\0", "bidi": "\u202e"}, '{"nul":"\\u0000","bidi":"\\u202e"}'),
    ]
    for value, message in cases:
        [request] = ask([pending(value, {"type": "boolean"})]).requests.values()
        assert request["params"]["message"] == message


@pytest.mark.parametrize(
    "value",
    [
        {"question": "Ship it?", "draft": "..."},
        [{"action_request": {"action": "a", "args": {}}, "config": {"allow_accept": True}}],
        {"type": "mcp"},
        None,
        5,
        True,
    ],
)
def test_a_value_that_is_no_string_and_has_no_schema_can_not_be_asked_and_says_how(
    value: Any,
) -> None:
    text = refusal(pending(value))
    assert "not a string" in text
    assert "response_schema=" in text


def test_values_without_a_json_form_can_not_be_asked_and_name_the_part() -> None:
    class Broken:
        def model_dump(self, **options: Any) -> Any:
            raise RuntimeError("secret")

    loop: list[Any] = []
    loop.append(loop)
    cases: list[tuple[Any, str]] = [
        ({"a": [object()]}, '"value.a[0]"'),
        (loop, "value"),
        (Broken(), "RuntimeError"),
        (2**64, "64 bits"),
    ]
    for value, reason in cases:
        text = refusal(pending(value, {"type": "boolean"}))
        assert reason in text
        assert "secret" not in text
    assert "response_schema" in refusal(pending("A?", object()))
    assert "JSON Schema" in refusal(pending("A?", [1]))


def test_text_with_nul_or_a_lone_surrogate_is_asked() -> None:
    messages = [
        next(iter(ask([pending(text)]).requests.values()))["params"]["message"]
        for text in ("a\0b", "a\ud800b")
    ]
    assert messages == ["a\0b", "a\ufffdb"]


def test_one_interrupt_that_can_not_be_asked_ends_them_all() -> None:
    refusal(pending("A?", id="a"), pending({"x": 1}, id="b"))


def test_nothing_pending_is_a_static_breakpoint() -> None:
    assert "interrupt_before or interrupt_after" in refusal()


# For clients that can't be asked.


def test_pending_interrupts_are_told_as_json() -> None:
    told = as_json(
        [
            pending({"x": date(2026, 8, 1)}, {"type": "boolean"}, id="b", path="2"),
            pending("Größe?", id="a", path="1"),
            pending("Größe?", id="a", path="1", namespace="sub:t", task="t"),
            pending(object(), id="c", path="3"),
        ]
    )
    assert "Größe" in told
    assert json.loads(told) == [
        {"value": "Größe?", "id": "a"},
        {"value": {"x": "2026-08-01"}, "id": "b", "response_schema": {"type": "boolean"}},
        {"value": "(object, which has no JSON form)", "id": "c"},
    ]


# Real graphs.


@pytest.mark.anyio
async def test_the_region_agent_asks_in_words() -> None:
    dialogue = Dialogue(region.graph)
    asked = await dialogue.start({})
    assert list(asked.requests) == [TEXT["key"]]
    assert await dialogue.answer(asked, {TEXT["key"]: TEXT["answer"]}) is None
    assert dialogue.output == {"region": "eu-west-1"}


@pytest.mark.anyio
async def test_the_deployment_agent_gets_its_model() -> None:
    dialogue = Dialogue(deployment.graph)
    asked = await dialogue.start({})
    assert list(asked.requests) == [TYPED["key"]]
    answer = accept(region="eu-west-1", replicas=3.0)
    assert await dialogue.answer(asked, {TYPED["key"]: answer}) is None
    assert json.dumps(dialogue.output, separators=(",", ":")) == TYPED["result_text"]


@pytest.mark.anyio
async def test_parallel_questions_are_one_round_and_each_branch_gets_its_own_answer() -> None:
    dialogue = Dialogue(pair.graph)
    asked = await dialogue.start({})
    by_text = {each["params"]["message"]: key for key, each in asked.requests.items()}
    answers = {
        key: accept(response="L" if "left" in text else "R") for text, key in by_text.items()
    }
    assert await dialogue.answer(asked, answers) is None
    assert dialogue.output["pair"] == "L | R"


@pytest.mark.anyio
async def test_rounds_one_after_another_ask_each_question_once() -> None:
    dialogue = Dialogue(survey.graph)
    asked: Round | None = await dialogue.start({"subject": "tea"})
    rounds = 0
    while asked is not None:
        rounds += 1
        requests = asked.requests.items()
        answers = {key: accept(**_any(each["params"])) for key, each in requests}
        asked = await dialogue.answer(asked, answers)
    assert rounds == 3


def _any(params: dict[str, Any]) -> dict[str, Any]:
    """Some content for a form."""
    fields: dict[str, Any] = params["requestedSchema"]["properties"]
    return {name: 3 if field["type"] == "integer" else "x" for name, field in fields.items()}


@pytest.mark.anyio
async def test_a_loop_that_asks_the_same_text_again_keeps_its_key_and_takes_each_answer_once() -> (
    None
):
    def age(state: Steps) -> Steps:
        answers: list[str] = []
        while not (answers and answers[-1].isdigit() and int(answers[-1]) > 0):
            answers.append(interrupt("Age?"))
        return {"steps": answers}

    dialogue = Dialogue(steps(age))
    asked: Round | None = await dialogue.start({})
    ids: list[str] = []
    for answer in ("abc", "-1", "42"):
        assert asked is not None
        [key] = asked.requests
        ids += [each.id for each in asked.asked]
        asked = await dialogue.answer(asked, {key: accept(response=answer)})
    assert asked is None
    assert dialogue.output["steps"] == ["abc", "-1", "42"]
    assert len(set(ids)) == 3


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (bool, False),
        (int, 0),
        (str, ""),
        (list[Literal["a"]], []),
        ({"type": "object", "properties": {"x": {"type": "boolean"}}}, {}),
        ({"type": "object", "properties": {"x": {"type": "boolean"}}}, {"x": False}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, None),
    ],
)
async def test_falsy_answers_reach_the_node_as_given(schema: Any, value: Any) -> None:
    dialogue = Dialogue(steps(asks("node", "Q?", schema=schema)))
    asked = await dialogue.start({})
    [key] = asked.requests
    wrapped = asked.requests[key]["params"]["requestedSchema"]["properties"].keys() == {"response"}
    content: Any = value if not wrapped else {} if value is None else {"response": value}
    assert await dialogue.answer(asked, {key: {"action": "accept", "content": content}}) is None
    assert dialogue.output["steps"] == [value]


@pytest.mark.anyio
async def test_fan_outs_nodes_and_subgraphs_ask_together_and_share_equal_text() -> None:
    sub = steps(asks("inner", "Same?"))

    def spread(state: Steps) -> list[Send]:
        return [Send("one", state), Send("one", state), Send("sub", state), Send("caller", state)]

    async def caller(state: Steps) -> Steps:
        called = await steps(asks("inner", "Called?", "Then?")).ainvoke({})
        return {"steps": called["steps"]}

    graph = StateGraph(Steps)
    graph.add_node("one", asks("one", "Same?")).add_node("sub", sub).add_node("caller", caller)
    graph.add_conditional_edges(START, spread, ["one", "sub", "caller"])
    dialogue = Dialogue(graph.compile())
    asked = await dialogue.start({"steps": []})
    assert {each["params"]["message"] for each in asked.requests.values()} == {"Same?", "Called?"}
    assert len(asked.asked) == 4
    texts = {key: each["params"]["message"] for key, each in asked.requests.items()}
    answers = {key: accept(response=f"to {text}") for key, text in texts.items()}
    asked = await dialogue.answer(asked, answers)
    assert asked is not None
    [(key, request)] = asked.requests.items()
    assert request["params"]["message"] == "Then?"
    assert await dialogue.answer(asked, {key: accept(response="end")}) is None
    said = dialogue.output["steps"]
    assert sorted(said) == sorted([*["to Same?"] * 3, "to Called?", "end"])


@pytest.mark.anyio
async def test_equal_relays_of_a_fan_out_keep_their_numbers_in_a_fresh_thread() -> None:
    def node(state: Any) -> Steps:
        reply = interrupt({**RELAY, "requests": [RELAY["requests"][1]]})
        return {"steps": [f"{state['steps'][0]}: {reply['responses']['form']['content']['x']}"]}

    sub = StateGraph(Steps).add_node("inner", node).add_edge(START, "inner").compile()

    def spread(state: Steps) -> list[Send]:
        return [Send("sub", {"steps": [n]}) for n in range(12)]

    async def call(state: Steps) -> Steps:
        return {"steps": (await sub.ainvoke(state))["steps"][1:]}

    graph = StateGraph(Steps).add_node("sub", call)
    compiled = graph.add_conditional_edges(START, spread, ["sub"]).compile()
    for _ in range(2):
        dialogue = Dialogue(compiled)
        asked = await dialogue.start({"steps": []})
        answers = {key: accept(x=key.partition(".")[2].partition("/")[0]) for key in asked.requests}
        assert len(answers) == 12
        assert await dialogue.answer(asked, answers) is None
        assert dialogue.output["steps"] == [f"{n}: {n + 1}" for n in range(12)]


@pytest.mark.anyio
async def test_a_task_of_the_functional_api_asks_one_question() -> None:
    ran: list[str] = []

    @task
    async def note(name: str) -> str:
        ran.append(name)
        return name

    @task
    async def approve(name: str) -> str:
        return interrupt(f"{name}?")

    @entrypoint()
    async def flow(name: str) -> list[str]:
        await note("before")
        answers = await asyncio.gather(approve(name), approve("other"))
        await note("after")
        return list(answers)

    dialogue = Dialogue(flow)
    asked = await dialogue.start("deploy")
    texts = {each["params"]["message"]: key for key, each in asked.requests.items()}
    assert set(texts) == {"deploy?", "other?"}
    answers = {key: accept(response=f"yes, {text}") for text, key in texts.items()}
    assert await dialogue.answer(asked, answers) is None
    assert dialogue.output == ["yes, deploy?", "yes, other?"]
    assert ran == ["before", "after"]


# Laws.

SAMPLES: list[list[Pending]] = [
    [pending("A?")],
    [pending("A?", TYPED["response_schema"])],
    [pending({"a": 1}, {"anyOf": [{"type": "integer"}, {"type": "null"}]})],
    [pending(RELAY)],
    [pending(REVIEW)],
    [
        pending(RELAY, id="1"),
        pending(RELAY, id="2"),
        pending(REVIEW, id="3"),
        pending("A?", id="4"),
    ],
]

VALUES = (
    strategies.JSON
    | strategies.objects("type", "requests", "name", "args", "action_requests", "review_configs")
    | st.just(RELAY)
    | st.just(REVIEW)
    | st.binary()
    | st.dates()
    | st.sets(st.integers())
    | st.complex_numbers()
    | st.builds(object)
    | st.dictionaries(st.integers() | st.none() | st.tuples(), st.integers(), max_size=3)
)


@given(
    st.lists(
        st.builds(
            Pending,
            id=st.sampled_from("abc"),
            value=VALUES,
            schema=st.none() | strategies.JSON | strategies.lawful().map(lambda case: case[0]),
            namespace=st.sampled_from(["", "a:b", "a:b|1", "a:b|c:d"]),
            path=strategies.TEXTS,
        ),
        max_size=3,
    )
)
def test_any_interrupts_are_a_round_or_a_reason_and_told_as_json(interrupts: list[Pending]) -> None:
    assert isinstance(json.loads(as_json(interrupts)), list)
    try:
        asked = ask(interrupts)
    except CannotAsk as reason:
        told = str(reason)
    else:
        told = PREFIX
        assert Round.load(asked.dump()) == asked
        json.dumps(asked.requests, allow_nan=False, ensure_ascii=False).encode()
        assert {each.id for each in asked.asked} == {each.id for each in interrupts}
    assert told.startswith(PREFIX)


@given(st.sampled_from(SAMPLES), st.data())
def test_any_json_answers_are_a_reading_or_invalid_params(
    interrupts: list[Pending], data: st.DataObject
) -> None:
    asked = Round.load(ask(interrupts).dump())
    contents = strategies.objects("response", "region", "replicas", "x", "decision", "args")
    answers = strategies.JSON | st.fixed_dictionaries(
        {"action": st.sampled_from(["accept", "decline", "cancel", "reject"])},
        optional={"content": contents | strategies.JSON},
    )
    responses = data.draw(
        st.fixed_dictionaries({}, optional=dict.fromkeys(asked.requests, answers))
    )
    try:
        reading = read(asked, responses)
    except InvalidParams as error:
        json.dumps(error.as_error()).encode()
        return
    assert isinstance(reading, Missing) == (responses.keys() != asked.requests.keys())
    if not isinstance(reading, Missing):
        assert digest(reading.answers)
        assert reading.answers.keys() == asked.requests.keys()
    if isinstance(reading, Resume):
        assert reading.values.keys() == {each.id for each in interrupts}


@given(st.lists(strategies.lawful(), min_size=1, max_size=3))
def test_reading_gives_each_interrupt_what_was_answered_to_it(
    cases: list[tuple[dict[str, Any], dict[str, Any]]],
) -> None:
    interrupts = [pending(f"Q{n}?", schema, id=str(n)) for n, (schema, _) in enumerate(cases)]
    asked = Round.load(ask(interrupts).dump())
    keys = {each.id: key for each in asked.asked for _, key in each.keys}
    responses = {keys[str(n)]: accept(**content) for n, (_, content) in enumerate(cases)}
    values = resumed(asked, responses)
    for n, (schema, content) in enumerate(cases):
        nulls = {name: None for name in schema["required"] if name not in content}
        assert values[str(n)] == {**content, **nulls}


@given(st.permutations(SAMPLES[-1]))
def test_any_order_asks_the_same_of_equal_interrupts(interrupts: list[Pending]) -> None:
    assert ask(interrupts).requests.keys() == ask(SAMPLES[-1]).requests.keys()
