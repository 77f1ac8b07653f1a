"""What people reported of agents that ask over MCP, as scenarios over HTTP: the number is the
report's. Nothing here knows how the product works inside."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.cannot_ask import PREFIX
from tests.agents.journal import noted
from tests.calling import (
    Pause,
    accept,
    ask,
    asked,
    call,
    declaring,
    ended,
    failed,
    got,
    refused,
)
from tests.served import ASKING, Served, error, post_older, serving
from tests.tables import rows

MISMATCH = "Form content does not match requestedSchema"
DECLINED = "The request for input was declined."
CANCELLED = "The request for input was cancelled."


def unasked(asking: Served, **raised: Any) -> str:
    """Why what the agent `one` raises can't be asked."""
    text = failed(call(asking, "one", raised))
    assert text.startswith(f"{PREFIX}. ")
    return text


def form(**fields: Any) -> dict[str, Any]:
    """The schema of an object with these fields, all required."""
    return {"type": "object", "properties": fields, "required": list(fields)}


def relay(*requests: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "mcp_elicitation", "requests": list(requests), **more}


def misfit(response: Any) -> tuple[str, str]:
    """The only field that an answer was refused for, and the first reason."""
    told = refused(response)
    assert told["message"] == MISMATCH
    [field] = {each["field"] for each in told["data"]["errors"]}
    return field, told["data"]["errors"][0]["reason"]


def test_an_accept_without_content_is_refused_by_field_and_the_right_answer_still_counts(
    asking: Served, tmp_path: Path
) -> None:
    """Report R3."""
    schema = form(n={"type": "integer", "minimum": 1, "maximum": 3})
    paused = ask(asking, schema=schema, journal=str(tmp_path))
    for answer in (accept(), {"action": "accept"}, {"action": "accept", "content": None}):
        assert misfit(paused.reply(answer)) == ("n", '"n" is a required property')
    assert noted(tmp_path) == {"ask": 1}
    assert got(paused.reply(accept(n=2))) == {"n": 2}
    assert noted(tmp_path) == {"ask": 2}


@pytest.mark.parametrize(("action", "text"), [("decline", DECLINED), ("cancel", CANCELLED)])
def test_a_refusal_that_no_human_gave_ends_one_call_and_poisons_no_other(
    asking: Served, tmp_path: Path, action: str, text: str
) -> None:
    """Report R4."""
    paused = ask(asking, journal=str(tmp_path))
    assert failed(paused.reply({"action": action})) == text
    assert failed(paused.reply({"action": action})) == text, "a stored outcome"
    assert noted(tmp_path) == {"ask": 1}
    again = ask(asking, journal=str(tmp_path))
    assert again.questions == paused.questions
    assert got(again.reply(accept(response="yes"))) == "yes"


@pytest.mark.parametrize("agent", ["several", "as_node", "called"])
def test_parallel_questions_are_one_round_and_each_branch_gets_its_own_answer(
    asking: Served, agent: str
) -> None:
    """Report R10."""
    wanted = {"asks": [{"value": text} for text in ("left?", "right?", "left?")]}
    rounds = [Pause.of(asking, agent, wanted) for _ in range(3)]
    assert rounds[0].questions == rounds[1].questions == rounds[2].questions
    assert sorted(rounds[0].keys()) == ["left?", "right?"]
    for paused in rounds:
        answers = {key: accept(response=f"to {text}") for text, key in paused.keys().items()}
        assert json.loads(ended(paused.send(answers)))["answers"] == {
            "0": "to left?",
            "1": "to right?",
            "2": "to left?",
        }


def test_a_partial_answer_moves_nothing_and_all_together_move_each_node_once(
    asking: Served, tmp_path: Path
) -> None:
    """Report R11."""
    paused = Pause.of(asking, "pair", {"journal": str(tmp_path)})
    left, right = paused.keys()["Left?"], paused.keys()["Right?"]
    before = noted(tmp_path)
    for partial in ({left: accept(response="l")}, {right: accept(response="r")}):
        assert asked(paused.send(partial)) == (paused.questions, paused.state)
    assert noted(tmp_path) == before
    text = ended(paused.send({left: accept(response="l"), right: accept(response="r")}))
    assert json.loads(text)["answers"] == ["left=l", "right=r"]
    assert noted(tmp_path) == {"left?": 2, "right?": 2, "left": 1, "right": 1}


def test_the_same_question_again_is_another_round_and_a_stale_answer_never_feeds_it(
    asking: Served, tmp_path: Path
) -> None:
    """Report R12."""
    first = Pause.of(asking, "looping", {"journal": str(tmp_path)})
    second = first.then({first.key: accept(response="abc")})
    third = second.then({second.key: accept(response="-1")})
    assert first.key == second.key == third.key
    assert len({first.state, second.state, third.state}) == 3
    assert asked(first.reply(accept(response="abc"))) == (second.questions, second.state)
    refused(first.reply(accept(response="42")))
    assert json.loads(ended(third.reply(accept(response="42"))))["answers"] == ["age=42"]
    assert noted(tmp_path)["age"] == 1
    assert noted(tmp_path)["age?"] == 4, "what stands before a question runs again for each answer"


FALSY: list[tuple[Any, Any]] = [
    ("bool", False),
    ("int", 0),
    ("str", ""),
    ("many", []),
]


@pytest.mark.parametrize(("kind", "value"), FALSY)
def test_a_falsy_answer_arrives_as_it_is(asking: Served, kind: str, value: Any) -> None:
    """Report R17."""
    told = got(ask(asking, kind=kind).reply(accept(response=value)))
    assert (type(told), told) == (type(value), value)


def test_false_in_a_form_and_an_empty_form_arrive_as_they_are(asking: Served) -> None:
    """Report R17."""
    flag = {"type": "object", "properties": {"on": {"type": "boolean"}}}
    assert got(ask(asking, schema=flag).reply(accept(on=False))) == {"on": False}
    assert got(ask(asking, schema=flag).reply(accept())) == {}


def test_a_form_without_fields_is_never_sent_and_the_text_names_a_bool_instead(
    asking: Served,
) -> None:
    """Report R18."""
    empty: dict[str, Any] = {"type": "object", "properties": {}}
    assert "bool" in unasked(asking, value="Sure?", schema=empty)
    request = {"key": "k", "message": "Sure?", "mode": "form", "requested_schema": empty}
    assert "bool" in unasked(asking, value=relay(request))
    proceed = ask(asking, "Proceed?", kind="bool")
    assert proceed.questions[proceed.key]["params"]["requestedSchema"] == {
        "properties": {"response": {"type": "boolean"}},
        "required": ["response"],
        "type": "object",
    }


def test_choices_are_flat_and_typed_and_come_back_as_the_model_has_them(asking: Served) -> None:
    """Report R19."""
    paused = ask(asking, kind="choices")
    fields = paused.fields
    assert fields["region"]["enum"] == ["us-east-1", "eu-west-1"]
    assert fields["region"]["type"] == "string"
    assert fields["tier"] == {"enum": ["free", "paid"], "title": "Tier", "type": "string"}
    assert fields["tags"]["items"] == {"type": "string", "enum": ["a", "b", "c"]}
    assert (fields["tags"]["minItems"], fields["tags"]["maxItems"]) == (1, 2)
    assert fields["fallback"] == {"enum": ["x", "y"], "title": "Fallback", "type": "string"}
    assert "$ref" not in json.dumps(paused.questions)
    answer = accept(region="eu-west-1", tier="free", tags=["c", "a"])
    assert got(paused.reply(answer)) == {**answer["content"], "fallback": None}


def test_titled_choices_of_a_relay_pass_as_they_are_with_their_type(asking: Served) -> None:
    """Report R19."""
    titled = [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]
    request = {"message": "Size?", "requestedSchema": form(size={"oneOf": titled})}
    paused = ask(asking, {"type": "mcp_elicitation", "requests": {"k": request}})
    assert paused.fields == {"size": {"type": "string", "oneOf": titled}}
    answer = accept(size="l")
    assert got(paused.reply(answer)) == {"responses": {"k": answer}}


@pytest.mark.parametrize("kind", ["int enum", "int choice"])
def test_a_choice_between_numbers_can_not_be_asked(asking: Served, kind: str) -> None:
    """Report R19."""
    text = unasked(asking, value="Which?", kind=kind)
    assert '"response" uses "enum"' in text
    assert "Choices are strings" in text


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("gt", '"response" uses "exclusiveMinimum"'),
        ("multiple", '"response" uses "multipleOf"'),
        ("pattern", '"response" uses "pattern"'),
        ("nested", '"person" is an object'),
        ("dict", "no fields"),
        ("ints", '"response" uses "items"'),
        ("uuid", '"response" uses "format" "uuid"'),
        ("bytes", '"response" uses "format" "binary"'),
        ("decimal", '"response" uses "anyOf"'),
        ("recursive", '"next" is an object'),
    ],
)
def test_a_constraint_that_forms_do_not_have_is_told_by_field_and_never_dropped(
    asking: Served, kind: str, told: str
) -> None:
    """Report R20."""
    assert told in unasked(asking, value="What?", kind=kind)


def test_a_form_of_101_fields_can_not_be_asked(asking: Served) -> None:
    """Report R20."""
    fields = {f"f{n}": {"type": "boolean"} for n in range(101)}
    assert "at most 100 fields" in unasked(asking, value="What?", schema=form(**fields))


def test_dates_and_optional_fields_are_plain_fields(asking: Served) -> None:
    """Report R20."""
    moments = ask(asking, kind="moments")
    assert [each["format"] for each in moments.fields.values()] == ["date", "date-time"]
    answer = accept(day="2026-02-28", at="2026-02-28T10:00:00Z")
    assert got(moments.reply(answer)) == {"day": "2026-02-28", "at": "2026-02-28T10:00:00+00:00"}
    model = ask(asking, kind="model")
    params = model.questions[model.key]["params"]["requestedSchema"]
    assert params["required"] == ["name"]
    assert params["properties"]["note"] == {"type": "string", "title": "Note"}


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ({"type": "string", "format": "email"}, ["nope", "", 5]),
        ({"type": "string", "format": "uri"}, ["not a uri", "example.com"]),
        ({"type": "string", "format": "date"}, ["2026-02-30", "28.02.2026"]),
        ({"type": "string", "format": "date-time"}, ["2026-02-28T10:00:00", "now"]),
        ({"type": "integer"}, ["3", 3.5, True, "42xyz", None]),
        ({"type": "string", "minLength": 3}, ["ab"]),
        (
            {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            [["a", "a"], ["c"], "a"],
        ),
    ],
)
def test_formats_types_and_bounds_are_checked_whatever_the_client_checked(
    asking: Served, field: dict[str, Any], wrong: list[Any]
) -> None:
    """Report R21."""
    paused = ask(asking, schema=form(x=field))
    for value in wrong:
        assert misfit(paused.reply(accept(x=value)))[0] == "x"


def test_a_whole_float_is_the_integer_and_what_was_not_asked_is_not_delivered(
    asking: Served,
) -> None:
    """Report R21."""
    told = got(ask(asking, schema=form(x={"type": "integer"})).reply(accept(x=3.0, y="more")))
    assert json.dumps(told) == '{"x": 3}'


def test_a_number_beyond_every_double_is_refused_and_the_round_stays(asking: Served) -> None:
    """Report R21. JSON readers do not agree on it, so the body itself is refused."""
    paused = ask(asking, kind="int")
    right = paused.reply(accept(response=3))
    assert got(right) == 3
    body = right.request.content.replace(b'"response":3', b'"response":1e999')
    assert b"1e999" in body
    headers = {
        key: value for key, value in right.request.headers.items() if key != "content-length"
    }
    refusal = httpx.post(asking.url, content=body, headers=headers, timeout=30)
    refused(refusal)


def test_fields_that_a_client_leaves_out_are_the_models_defaults(asking: Served) -> None:
    """Report R22."""
    assert got(ask(asking, kind="model").reply(accept(name="Ada"))) == {
        "name": "Ada",
        "count": 3,
        "loud": True,
        "note": None,
    }
    paused = ask(asking, kind="model")
    for name in ("count", "note"):
        assert misfit(paused.reply(accept(name="Ada", **{name: None})))[0] == name
    assert got(paused.reply(accept(name="Ada", note="")))["note"] == ""


def test_fields_of_a_plain_schema_are_delivered_as_sent(asking: Served) -> None:
    """Report R22."""
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "count": {"type": "integer", "default": 3}},
        "required": ["name"],
    }
    assert got(ask(asking, schema=schema).reply(accept(name="Ada"))) == {"name": "Ada"}


@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize("extra", [{}, {"content": None}, {"content": {}}, {"content": {"x": 5}}])
def test_what_comes_with_a_refusal_is_neither_judged_nor_passed_on(
    asking: Served, action: str, extra: dict[str, Any]
) -> None:
    """Report R23."""
    answer = {"action": action, "else": 1, **extra}
    text = DECLINED if action == "decline" else CANCELLED
    assert failed(ask(asking).reply(answer)) == text
    requests = [
        {
            "key": "f",
            "message": "F?",
            "mode": "form",
            "requested_schema": form(x={"type": "string"}),
        },
        {"key": "u", "message": "U?", "mode": "url", "url": "https://example.com/"},
    ]
    assert got(ask(asking, relay(*requests)).reply(answer)) == {
        "responses": {"f": {"action": action}, "u": {"action": action}}
    }


@pytest.mark.parametrize(
    "answer", [{"action": each} for each in ("reject", "ACCEPT", "", 5)] + [{}]
)
def test_an_unknown_action_is_refused_with_the_three_words_and_the_round_stays(
    asking: Served, answer: dict[str, Any]
) -> None:
    """Report R24."""
    paused = ask(asking)
    told = refused(paused.reply({**answer, "content": {"response": "x"}}))["message"]
    assert all(f'"{word}"' in told for word in ("accept", "decline", "cancel"))
    assert got(paused.reply(accept(response="x"))) == "x"


def test_a_refused_relay_holds_no_content_and_a_typed_question_never_delivers_a_refusal(
    asking: Served,
) -> None:
    """Report R25."""
    schema = form(ok={"type": "boolean"})
    request = {"key": "k", "message": "Sure?", "mode": "form", "requested_schema": schema}
    declined = got(
        ask(asking, relay(request)).reply({"action": "decline", "content": {"ok": True}})
    )
    assert declined == {"responses": {"k": {"action": "decline"}}}
    accepted = got(ask(asking, relay(request)).reply(accept(ok=True)))
    assert accepted == {"responses": {"k": accept(ok=True)}}
    assert failed(ask(asking, kind="bool").reply({"action": "decline"})) == DECLINED


NEEDED: dict[str, Any] = {"requiredCapabilities": {"elicitation": {"form": {}}}}


@pytest.mark.parametrize(
    "elicitation", [{}, {"form": {}}, {"form": {"applyDefaults": True}, "future": 1}]
)
def test_a_declaration_with_unknown_members_or_none_means_form(
    asking: Served, elicitation: Any
) -> None:
    """Report R26."""
    asked(declaring(asking, "one", {"value": "Q?"}, {"elicitation": elicitation}))


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}])
def test_a_client_that_declares_no_form_is_told_that_it_is_needed(
    asking: Served, capabilities: Any
) -> None:
    """Report R26."""
    response = declaring(asking, "one", {"value": "Q?"}, capabilities)
    assert response.status_code == 400
    assert error(response)["code"] == -32021
    assert error(response)["data"] == NEEDED


@pytest.mark.parametrize("elicitation", [True, None, [], "form", {"form": True}])
def test_a_malformed_declaration_is_refused(asking: Served, elicitation: Any) -> None:
    """Report R26."""
    refused(declaring(asking, "one", {"value": "Q?"}, {"elicitation": elicitation}))


def test_each_request_is_judged_by_its_own_declaration_and_the_round_stays(asking: Served) -> None:
    """Report R26."""
    paused = ask(asking)
    response = paused.reply(accept(response="x"), modes=())
    assert response.status_code == 400
    assert error(response)["data"] == NEEDED
    assert got(paused.reply(accept(response="x"))) == "x"


@pytest.mark.parametrize("state", [5, {}, [], None, "", "x" * 1_000_000, "\N{GRINNING FACE}"])
def test_a_malformed_state_starts_no_fresh_call(asking: Served, tmp_path: Path, state: Any) -> None:
    """Report R27."""
    wanted = {"value": "Q?", "journal": str(tmp_path)}
    refused(call(asking, "one", wanted, requestState=state))
    refused(call(asking, "one", wanted, requestState=state, inputResponses={}))
    assert noted(tmp_path) == {}


@pytest.mark.parametrize("responses", [[], "x", None, {"k": "yes"}, {"k": None}, {"k": []}])
def test_malformed_answers_start_no_fresh_call_and_leave_a_round_open(
    asking: Served, tmp_path: Path, responses: Any
) -> None:
    """Report R27."""
    wanted = {"value": "Q?", "journal": str(tmp_path)}
    refused(call(asking, "one", wanted, inputResponses=responses))
    assert noted(tmp_path) == {}
    paused = Pause.of(asking, "one", wanted)
    refused(paused.send(responses))
    refused(paused.reply(accept(response="x"), requestState=paused.state + "\n"))
    assert noted(tmp_path) == {"ask": 1}
    assert asked(call(asking, "one", wanted, requestState=paused.state)) == (
        paused.questions,
        paused.state,
    )
    answer = {**accept(response="x"), "resultType": "complete"}
    assert got(paused.reply(answer)) == "x"
    assert got(call(asking, "one", wanted, inputResponses={paused.key: answer})) == "x"


def test_unknown_keys_are_ignored_and_a_key_must_match_exactly(
    asking: Served, tmp_path: Path
) -> None:
    """Report R28."""
    paused = ask(asking, journal=str(tmp_path))
    other = ask(asking, "Another question?")
    right = accept(response="x")
    for key in ("undefined", "", other.key, paused.key.upper(), f"{paused.key} "):
        assert asked(paused.send({key: right})) == (paused.questions, paused.state)
    assert noted(tmp_path) == {"ask": 1}
    assert got(paused.send({paused.key: right, "undefined": {}, "": right})) == "x"


@pytest.mark.parametrize(
    "change",
    [
        {"value": "Another?"},
        {"value": "Q?", "schema": {"type": "number", "maximum": 1.0}},
        {"value": "Q?", "schema": {"type": "number", "maximum": 1}, "kind": None},
        {"value": "Q\u0301?", "schema": {"type": "number", "maximum": 1}},
        {},
    ],
)
def test_a_state_serves_no_other_arguments_and_stays_good_for_its_own(
    asking: Served, change: dict[str, Any]
) -> None:
    """Report R30."""
    own = {"value": "Q?", "schema": {"type": "number", "maximum": 1}}
    paused = Pause.of(asking, "one", own)
    answers = {paused.key: accept(response=1)}
    given: dict[str, Any] = {"inputResponses": answers, "requestState": paused.state}
    told = refused(call(asking, "one", change, **given))
    assert told == {"code": -32602, "message": "Invalid or expired requestState"}
    refused(call(asking, "several", own, **given))
    reordered = {"schema": {"maximum": 1, "type": "number"}, "value": "Q?"}
    assert got(call(asking, "one", reordered, **given)) == 1


OLD_INBOX: dict[str, Any] = {"action_request": {"action": "a", "args": {}}, "config": {}}


@pytest.mark.parametrize(
    "raised",
    [
        {"value": {"question": "Ship it?", "draft": "..."}},
        {"value": [OLD_INBOX]},
        {"value": None},
        {"value": 5},
        {"python": "model"},
    ],
)
def test_a_value_without_a_schema_says_how_to_give_it_one(
    asking: Served, raised: dict[str, Any]
) -> None:
    """Report R38."""
    assert "response_schema=" in unasked(asking, **raised)


def test_a_value_with_a_schema_is_shown_as_json_and_one_that_has_none_fails_cleanly(
    asking: Served,
) -> None:
    """Report R38."""
    draft = {"question": "Ship it?", "draft": "Größe"}
    paused = ask(asking, draft, kind="bool")
    assert paused.message == '{"question":"Ship it?","draft":"Größe"}'
    assert got(paused.reply(accept(response=True))) is True
    assert Pause.of(asking, "one", {"python": "model", "kind": "bool"}).message == '{"name":"Ada"}'
    for name in ("object", "cycle"):
        assert "no JSON form" in unasked(asking, python=name, kind="bool")


def test_what_can_not_be_asked_leaves_nothing_behind(database: str) -> None:
    """Report R38."""
    with serving(database, config=ASKING) as served:
        unasked(served, value={"question": "Ship it?"})
        failed(call(served, "several", {"asks": [{"value": "A?"}, {"value": 5}]}))
        failed(call(served, "breakpoint_before", {"journal": "/tmp"}))
    assert set(rows(database).values()) == {0}


def test_a_static_breakpoint_is_an_error_for_whoever_could_answer_and_a_result_for_others(
    asking: Served, tmp_path: Path
) -> None:
    """Report R39."""
    wanted = {"journal": str(tmp_path)}
    text = failed(call(asking, "breakpoint_before", wanted))
    assert "interrupt_before" in text
    assert json.loads(ended(call(asking, "breakpoint_before", wanted, modes=()))) == {
        **wanted,
        "answers": [],
    }
    older = post_older(asking.url, "tools/call", name="breakpoint_before", arguments=wanted)
    assert json.loads(older.json()["result"]["content"][0]["text"])["journal"] == str(tmp_path)
    assert noted(tmp_path) == {}


def test_a_tool_is_asked_through_wrappers_and_retries_that_catch_errors(
    asking: Served, tmp_path: Path
) -> None:
    """Report R40."""
    for agent in ("wrapped", "retried"):
        journal = tmp_path / agent
        journal.mkdir()
        paused = propose(asking, agent, journal, ("pay", {"amount": 1}))
        assert paused.message == "Pay 1?"
        ended(paused.reply(accept(response="yes")))
        assert noted(journal) == {"pay:yes": 1}


def test_a_question_that_a_node_swallows_is_not_asked(asking: Served, tmp_path: Path) -> None:
    """Report R40. The README tells of it."""
    text = ended(call(asking, "swallowing", {"journal": str(tmp_path)}))
    assert "swallowed GraphInterrupt" in text


def propose(
    asking: Served, agent: str, journal: Path, *calls: tuple[str, dict[str, Any]], **params: Any
) -> Pause:
    """A call of an agent whose model proposes these tool calls; it must pause."""
    human = {"messages": [{"role": "user", "content": json.dumps(calls)}]}
    return Pause.of(asking, agent, human, context={"journal": str(journal)}, **params)


def told(text: str) -> dict[str, str]:
    """What the model was told of each of its calls."""
    messages = json.loads(text)["messages"]
    return {each["tool_call_id"]: each["content"] for each in messages if each["type"] == "tool"}


def test_questions_of_a_subgraph_in_a_subgraph_come_in_order_and_nothing_starts_over(
    asking: Served, tmp_path: Path
) -> None:
    """Report R41."""
    first = Pause.of(asking, "deep", {"journal": str(tmp_path)})
    assert first.message == "Inner A?"
    second = first.then({first.key: accept(response="a")})
    assert second.message == "Inner B?"
    answers = json.loads(ended(second.reply(accept(response="b"))))["answers"]
    assert answers == ["inner_first=a", "inner_second=b"]
    assert noted(tmp_path)["inner_first"] == noted(tmp_path)["inner_second"] == 1
    assert noted(tmp_path)["inner_first?"] == 2


def test_an_entrypoint_asks_one_question_and_its_finished_task_does_not_run_again(
    asking: Served, tmp_path: Path
) -> None:
    """Report R42."""
    paused = Pause.of(asking, "functional", {"journal": str(tmp_path)})
    assert paused.message == "Ship?"
    assert json.loads(ended(paused.reply(accept(response="yes")))) == {"all": "charged yes shipped"}
    assert noted(tmp_path)["charge"] == noted(tmp_path)["ship"] == 1


def test_inner_questions_with_one_key_are_two_and_each_branch_is_answered_under_its_own(
    asking: Served,
) -> None:
    """Report R43."""
    schema = form(ok={"type": "boolean"})
    listed = {"key": "confirm", "message": "One?", "mode": "form", "requested_schema": schema}
    mapped = {"message": "Other?", "requestedSchema": schema}
    values = [
        relay(listed, tool_name="pay"),
        {"type": "mcp_elicitation", "requests": {"confirm": mapped}, "server": "inner"},
    ]
    paused = Pause.of(asking, "several", {"asks": [{"value": value} for value in values]})
    keys = paused.keys()
    assert sorted(keys) == ["One?", "Other?"]
    assert all(key.endswith(".1/confirm") for key in paused.questions)
    answers = {keys["One?"]: accept(ok=True), keys["Other?"]: {"action": "cancel"}}
    assert json.loads(ended(paused.send(answers)))["answers"] == {
        "0": {"responses": {"confirm": accept(ok=True)}},
        "1": {"responses": {"confirm": {"action": "cancel"}}},
    }


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"mode": "popup"}, '"mode"'),
        ({"requested_schema": form(x={"type": "object"})}, '"x" is an object'),
        ({"requested_schema": form(x={"type": "string", "pattern": "a"})}, '"pattern"'),
        ({"requested_schema": None}, '"requested_schema"'),
        ({"key": "a\0b"}, "NUL"),
    ],
)
def test_an_inner_question_that_breaks_a_rule_can_not_be_asked(
    asking: Served, change: dict[str, Any], told: str
) -> None:
    """Report R43."""
    request: dict[str, Any] = {"key": "k", "message": "Q?", "mode": "form"}
    assert told in unasked(asking, value=relay({**request, **change}))


def test_accepting_a_page_is_no_proof_and_the_agent_asks_until_it_has_one(
    asking: Served, tmp_path: Path
) -> None:
    """Report R44."""
    first = Pause.of(asking, "consent", {"journal": str(tmp_path)})
    second = first.then({"sign_in": {"action": "accept"}})
    third = second.then({"sign_in": {"action": "accept", "content": {"stray": 1}}})
    assert first.questions == second.questions == third.questions
    assert len({first.state, second.state, third.state}) == 3
    (tmp_path / "connected").touch()
    text = ended(third.reply({"action": "accept"}))
    assert json.loads(text)["status"] == "connected"


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "https://user:pw@example.com",
        "https://@example.com",
        "http://example.com",
        "http://127.0.0.1.evil.example",
        "https:///x",
        "https://example.com/" + "a" * 4077,
        " https://example.com",
        "https://example.com\n.evil.example",
        "https:\\\\example.com",
    ],
)
def test_an_unsafe_page_can_not_be_asked(asking: Served, url: str) -> None:
    """Report R45."""
    request = {"key": "k", "message": "Open it.", "mode": "url", "url": url}
    assert "The URL" in unasked(asking, value=relay(request))


@pytest.mark.parametrize(
    "url", ["HTTPS://EXAMPLE.com", "http://localhost:8080", "http://[::1]/", "http://127.0.0.1/"]
)
def test_a_safe_page_is_passed_on_as_it_is(asking: Served, url: str) -> None:
    """Report R45."""
    request = {"key": "k", "message": "Open it.", "mode": "url", "url": url}
    paused = ask(asking, relay(request))
    assert paused.questions["k"]["params"]["url"] == url


def test_a_tool_beside_an_asking_one_runs_once_when_each_call_has_a_task(
    asking: Served, tmp_path: Path
) -> None:
    """Report R51."""
    calls = ("pay", {"amount": 1}), ("pay", {"amount": 2}), ("log", {"line": "x"})
    paused = propose(asking, "own_tasks", tmp_path, *calls)
    assert sorted(paused.keys()) == ["Pay 1?", "Pay 2?"]
    answers = {key: accept(response=text[4]) for text, key in paused.keys().items()}
    ended(paused.send(answers))
    assert noted(tmp_path) == {"pay:1": 1, "pay:2": 1, "log": 1}


def test_an_asking_tool_that_shares_its_task_with_another_is_not_asked(
    asking: Served, tmp_path: Path
) -> None:
    """Report R51. An answer could reach the wrong one, and the other would run again."""
    calls = json.dumps([("pay", {"amount": 1}), ("log", {"line": "x"})])
    human = {"messages": [{"role": "user", "content": calls}]}
    text = failed(call(asking, "shared", human, context={"journal": str(tmp_path)}))
    assert text.startswith(PREFIX)
    assert "task of its own" in text


# Reviews of tool calls.

MODES = ["batched", "per_call"]


@pytest.mark.parametrize("agent", MODES)
def test_a_declined_review_is_a_rejection_where_one_is_allowed_and_ends_the_call_elsewhere(
    asking: Served, tmp_path: Path, agent: str
) -> None:
    """Report R4."""
    mail = propose(asking, agent, tmp_path, ("send_email", {"to": "a@b.c", "subject": "s"}))
    assert "was not executed" in told(ended(mail.reply({"action": "decline"})))["1"]
    delete = propose(asking, agent, tmp_path, ("delete_file", {"path": "/a"}))
    assert failed(delete.reply({"action": "decline"})) == DECLINED
    for paused in (
        propose(asking, agent, tmp_path, ("delete_file", {"path": "/a"})),
        propose(asking, agent, tmp_path, ("send_email", {"to": "a@b.c", "subject": "s"})),
    ):
        assert failed(paused.reply({"action": "cancel"})) == CANCELLED
    assert noted(tmp_path) == {}


@pytest.mark.parametrize("agent", MODES)
def test_gated_calls_are_asked_about_and_the_others_just_run(
    asking: Served, tmp_path: Path, agent: str
) -> None:
    """Report R13."""
    mail = ("send_email", {"to": "a@example.com", "subject": "s"})
    paused = propose(asking, agent, tmp_path, mail, ("read_calendar", {"day": "mon"}), mail)
    first, second = sorted(paused.questions)
    assert (first[-2:], second[-2:]) == (".1", ".2")
    assert first[:-2] == second[:-2]
    answers = {first: accept(decision="approve"), second: accept(decision="reject", message="no")}
    replies = told(ended(paused.send(answers)))
    assert noted(tmp_path) == {"send:a@example.com": 1, "read:mon": 1}
    assert replies["1"] == 'Sent "s" to a@example.com.'
    assert replies["2"] == "free"
    assert "reason: no" in replies["3"]


@pytest.mark.parametrize("agent", MODES)
def test_keys_decide_about_calls_and_never_the_order_of_the_answers(
    asking: Served, tmp_path: Path, agent: str
) -> None:
    """Report R14."""
    mail = {"to": "a@example.com", "subject": "s"}
    paused = propose(asking, agent, tmp_path, ("delete_file", {"path": "/a"}), ("send_email", mail))
    by_tool = {
        next(tool for tool in ("delete_file", "send_email") if tool in message): key
        for message, key in paused.keys().items()
    }
    answers = {
        by_tool["send_email"]: accept(decision="reject"),
        by_tool["delete_file"]: accept(decision="approve"),
    }
    if list(answers) == list(paused.questions):
        answers = dict(reversed(answers.items()))
    ended(paused.send(answers))
    assert noted(tmp_path) == {"delete:/a": 1}


@pytest.mark.parametrize("agent", MODES)
def test_three_equal_calls_get_the_decision_of_their_own_key(
    asking: Served, tmp_path: Path, agent: str
) -> None:
    """Report R14."""
    mail = ("send_email", {"to": "a@example.com", "subject": "s"})
    paused = propose(asking, agent, tmp_path, mail, mail, mail)
    first, second, third = sorted(paused.questions)
    edited = accept(decision="edit", args='{"to": "b@example.com", "subject": "s"}')
    answers = {third: edited, second: accept(decision="reject"), first: accept(decision="approve")}
    replies = told(ended(paused.send(answers)))
    assert noted(tmp_path) == {"send:a@example.com": 1, "send:b@example.com": 1}
    assert replies["1"] == 'Sent "s" to a@example.com.'
    assert "was not executed" in replies["2"]
    assert "b@example.com" in replies["3"]


@pytest.mark.parametrize("agent", MODES)
def test_an_edited_call_runs_once_as_edited_and_the_model_is_told(
    asking: Served, tmp_path: Path, agent: str
) -> None:
    """Report R15."""
    mail = {"to": "a@example.com", "subject": 'Größe "L"'}
    paused = propose(asking, agent, tmp_path, ("send_email", mail))
    prefilled = paused.fields["args"]["default"]
    assert json.loads(prefilled) == mail
    assert "Größe" in prefilled
    edited = prefilled.replace("a@example.com", "b@example.com")
    replies = told(ended(paused.reply(accept(decision="edit", args=edited))))
    assert noted(tmp_path) == {"send:b@example.com": 1}
    assert "a human reviewer replaced this tool call" in replies["1"]


NO_OBJECTS = ["", "[]", '"x"', "{bad", "null", '{"to":"a","to":"b"}', None]


@pytest.mark.parametrize("agent", MODES)
def test_what_is_no_decision_is_refused_and_the_round_stays(
    asking: Served, tmp_path: Path, agent: str
) -> None:
    """Report R16. An edit without arguments is refused: who changes none approves."""
    paused = propose(asking, agent, tmp_path, ("send_email", {"to": "a@b.c", "subject": "s"}))
    for args in NO_OBJECTS:
        content = {"decision": "edit"} if args is None else {"decision": "edit", "args": args}
        assert misfit(paused.reply(accept(**content)))[0] == "args"
    for message in ({}, {"message": ""}, {"message": " \n"}):
        assert misfit(paused.reply(accept(decision="respond", **message)))[0] == "message"
    for decision in ("maybe", "APPROVE", "", 1):
        assert misfit(paused.reply(accept(decision=decision)))[0] == "decision"
    assert noted(tmp_path) == {}
    leftovers = accept(decision="approve", args="{bad", message="left over")
    assert told(ended(paused.reply(leftovers)))["1"] == 'Sent "s" to a@b.c.'


def test_wrong_types_in_an_edit_are_the_tools_to_tell_in_batched_mode_alone(
    asking: Served, tmp_path: Path
) -> None:
    """Report R16."""
    edit = accept(decision="edit", args='{"to": 5}')
    mail = ("send_email", {"to": "a@b.c", "subject": "s"})
    replies = told(ended(propose(asking, "batched", tmp_path, mail).reply(edit)))
    assert "subject" in replies["1"]
    message = refused(propose(asking, "per_call", tmp_path, mail).reply(edit))["message"]
    assert message.startswith("The decision does not fit the tool: ")
    assert noted(tmp_path) == {}


def test_an_edit_of_two_megabytes_runs_once_as_edited(asking: Served, tmp_path: Path) -> None:
    """Report R16."""
    paused = propose(asking, "batched", tmp_path, ("delete_file", {"path": "/a"}))
    args = json.dumps({"path": "/" + "b" * 2_000_000})
    assert "deleted /bbb" in told(ended(paused.reply(accept(decision="edit", args=args))))["1"]


@pytest.mark.parametrize("agent", MODES)
def test_a_reviewer_sees_the_whole_call_whatever_its_description_says(
    asking: Served, tmp_path: Path, agent: str
) -> None:
    """Report R46."""
    command = "echo " + "x" * 5_000 + "\x1b[2K\r\u202eAllowed: yes; rm -rf /"
    paused = propose(asking, agent, tmp_path, ("run_shell", {"command": command}))
    assert paused.message == "Looks harmless."
    seen: str = paused.fields["decision"]["description"]
    name, arguments = seen.split("\n")
    assert name == "Tool: run_shell"
    assert json.loads(arguments.removeprefix("Arguments: ")) == {"command": command}
    assert arguments.isprintable()


@pytest.mark.parametrize("agent", MODES)
def test_arguments_too_large_for_a_form_are_asked_about_without_the_edit_and_shown_whole(
    asking: Served, tmp_path: Path, agent: str
) -> None:
    """Report R46."""
    large = "x" * 1_100_000 + " rm -rf /"
    mail = propose(asking, agent, tmp_path, ("send_email", {"to": "a@b.c", "subject": large}))
    assert large in mail.message
    decision = mail.fields["decision"]
    assert [each["const"] for each in decision["oneOf"]] == ["approve", "reject", "respond"]
    assert decision["description"] == "The arguments are too large to edit here."
    assert misfit(mail.reply(accept(decision="edit", args="{}")))[0] == "decision"
    shell = propose(asking, agent, tmp_path, ("run_shell", {"command": large}))
    assert shell.message.startswith("Looks harmless.")
    assert "run_shell" in shell.message
    assert large in shell.message
    calls = json.dumps([("rename_file", {"path": large})])
    human = {"messages": [{"role": "user", "content": calls}]}
    text = failed(call(asking, agent, human, context={"journal": str(tmp_path)}))
    assert text.startswith(PREFIX)
    assert noted(tmp_path) == {}
