"""Tool calls that a person reviews: with real agents in both modes, and in JavaScript's shape."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import tool

from agents import mailer
from core.cannot_ask import PREFIX, CannotAsk
from core.errors import InvalidParams
from core.questions import Ended, Pending, Resume, Round, ask, read
from tests import scripted, strategies
from tests.calling import accept
from tests.dialogue import Dialogue

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "vectors.json").read_text(encoding="utf-8")
)

MODES = ["batched", "per_call"]
ALL = ["approve", "edit", "reject", "respond"]

INPUT = {"messages": [{"role": "user", "content": "Write to ada@example.com about Launch"}]}

ran: list[tuple[str, ...]] = []
"""Which tools ran, with what."""


@pytest.fixture(autouse=True)
def _nothing_ran() -> Iterator[None]:
    ran.clear()
    yield
    ran.clear()


@tool
def send_email(to: str, subject: str) -> str:
    """Send an e-mail."""
    ran.append(("send", to, subject))
    return f"sent to {to}"


@tool
def read_calendar(day: str) -> str:
    """Read a calendar."""
    ran.append(("read", day))
    return "free"


@tool
def delete_file(path: str) -> str:
    """Delete a file."""
    ran.append(("delete", path))
    return f"deleted {path}"


TOOLS = [send_email, read_calendar, delete_file]


def call(name: str, id: str = "1", **args: Any) -> ToolCall:
    return ToolCall(name=name, args=args, id=id, type="tool_call")


def mail(id: str = "1", to: str = "ada@example.com", subject: str = "Launch") -> ToolCall:
    return call("send_email", id, to=to, subject=subject)


def reviewed(*calls: ToolCall, mode: Any = "batched", **gates: Any) -> Dialogue:
    """An agent that proposes these calls in one turn, with some tools gated."""
    review = HumanInTheLoopMiddleware(gates or {"send_email": True}, interrupt_mode=mode)
    reply = AIMessage("", tool_calls=list(calls))
    return Dialogue(scripted.agent(TOOLS, reply, middleware=[review]))


def messages(dialogue: Dialogue) -> list[tuple[str, str]]:
    """What the model was told of each call."""
    told = [each for each in dialogue.output["messages"] if isinstance(each, ToolMessage)]
    return [(each.tool_call_id, str(each.content)) for each in told]


def batch(*actions: dict[str, Any], allowed: Any = ALL, **more: Any) -> Pending:
    """A batched interrupt as the middleware raises it."""
    configs = [{"action_name": each.get("name"), "allowed_decisions": allowed} for each in actions]
    value = {"action_requests": list(actions), "review_configs": configs, **more}
    return Pending(id="1", value=value, schema=None)


def action(**changes: Any) -> dict[str, Any]:
    return {"name": "send_email", "args": {"to": "a"}, "description": "Send send_email?", **changes}


def approval(schema: dict[str, Any], **changes: Any) -> Pending:
    """A per-call interrupt as the middleware raises it."""
    value = {"type": "tool_approval", "tool_call_id": "c", **action(**changes)}
    return Pending(id="1", value=value, schema=schema)


def decisions(round: Round, *responses: dict[str, Any]) -> Any:
    """What a batched interrupt resumes with, for the answers to its questions in order."""
    reading = read(round, dict(zip(round.requests, responses, strict=True)))
    assert isinstance(reading, Resume)
    [value] = reading.values.values()
    return value["decisions"]


def error(round: Round, **content: Any) -> InvalidParams:
    with pytest.raises(InvalidParams) as refused:
        read(round, dict.fromkeys(round.requests, accept(**content)))
    return refused.value


def shown(pending: Pending) -> tuple[str, dict[str, Any]]:
    """The message and the form's fields of the only question."""
    [request] = ask([pending]).requests.values()
    return request["params"]["message"], request["params"]["requestedSchema"]["properties"]


def choices(fields: dict[str, Any]) -> list[str]:
    return [option["const"] for option in fields["decision"]["oneOf"]]


def refusal(pending: Pending) -> str:
    with pytest.raises(CannotAsk) as refused:
        ask([pending])
    assert str(refused.value).startswith(PREFIX)
    return str(refused.value)


# The reference's example.


@pytest.mark.anyio
@pytest.mark.parametrize("graph", [mailer.graph, mailer.per_call])
async def test_the_mailer_asks_as_the_reference_prints_it(graph: Any) -> None:
    expected = VECTORS["review"]
    asked = await Dialogue(graph).start(INPUT)
    params = {
        "message": expected["description"],
        "mode": "form",
        "requestedSchema": expected["requestedSchema"],
    }
    wire = {expected["key"]: {"method": "elicitation/create", "params": params}}
    assert json.dumps(asked.requests) == json.dumps(wire)


@pytest.mark.anyio
@pytest.mark.parametrize("graph", [mailer.graph, mailer.per_call])
async def test_the_mailer_sends_what_was_approved(graph: Any) -> None:
    dialogue = Dialogue(graph)
    asked = await dialogue.start(INPUT)
    [key] = asked.requests
    assert await dialogue.answer(asked, {key: accept(decision="approve")}) is None
    assert dialogue.output["messages"][-1].content == 'Sent "Launch" to ada@example.com.'


# The table of decisions, as real middleware takes them.


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("response", "calls", "told"),
    [
        (accept(decision="approve"), 1, "sent to ada"),
        (accept(decision="approve", args="{broken", message="left over"), 1, "sent to ada"),
        (accept(decision="reject"), 0, "was not executed"),
        (accept(decision="reject", message=" \n"), 0, "was not executed"),
        (accept(decision="reject", message="Too early", args="[]"), 0, "reason: Too early"),
        (accept(decision="respond", message="It was sent by hand"), 0, "It was sent by hand"),
        ({"action": "decline"}, 0, "was not executed"),
        ({"action": "decline", "content": {"decision": "approve"}}, 0, "was not executed"),
    ],
)
async def test_each_answer_is_the_decision_of_the_table(
    mode: str, response: dict[str, Any], calls: int, told: str
) -> None:
    dialogue = reviewed(mail(), mode=mode)
    asked = await dialogue.start(INPUT)
    [key] = asked.requests
    assert await dialogue.answer(asked, {key: response}) is None
    assert len(ran) == calls
    [(_, content)] = messages(dialogue)
    assert told in content


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_an_edited_call_runs_once_as_edited_with_the_note_for_the_model(mode: str) -> None:
    dialogue = reviewed(mail(to="a@example.com"), mode=mode)
    asked = await dialogue.start(INPUT)
    [key] = asked.requests
    edited = '{"to": "b@example.com", "subject": "Größe"}'
    assert await dialogue.answer(asked, {key: accept(decision="edit", args=edited)}) is None
    assert ran == [("send", "b@example.com", "Größe")]
    [(_, told)] = messages(dialogue)
    assert "a human reviewer replaced this tool call" in told


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_only_gated_calls_are_asked_about_and_each_is_a_question_of_its_own(
    mode: str,
) -> None:
    dialogue = reviewed(mail("1"), call("read_calendar", "2", day="mon"), mail("3"), mode=mode)
    asked = await dialogue.start(INPUT)
    first, second = asked.requests
    stem = first.removesuffix(".1")
    assert (first, second) == (f"{stem}.1", f"{stem}.2")
    answers = {second: accept(decision="reject", message="Once"), first: accept(decision="approve")}
    assert await dialogue.answer(asked, answers) is None
    assert sorted(ran) == [("read", "mon"), ("send", "ada@example.com", "Launch")]
    told = dict(messages(dialogue))
    assert sorted(told) == ["1", "2", "3"]
    assert told["1"] == "sent to ada@example.com"
    assert "reason: Once" in told["3"]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_keys_decide_and_never_the_order_of_the_answers(mode: str) -> None:
    dialogue = reviewed(
        call("delete_file", "1", path="/a"),
        mail("2"),
        mode=mode,
        delete_file=True,
        send_email=True,
    )
    asked = await dialogue.start(INPUT)
    by_tool = {
        "delete" if "delete_file" in request["params"]["message"] else "mail": key
        for key, request in asked.requests.items()
    }
    answers = {
        by_tool["mail"]: accept(decision="reject"),
        by_tool["delete"]: accept(decision="approve"),
    }
    assert await dialogue.answer(asked, answers) is None
    assert ran == [("delete", "/a")]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_three_equal_calls_get_three_decisions(mode: str) -> None:
    dialogue = reviewed(mail("1"), mail("2"), mail("3"), mode=mode)
    asked = await dialogue.start(INPUT)
    first, second, third = asked.requests
    other = '{"to":"b@example.com","subject":"Launch"}'
    answers = {
        third: accept(decision="edit", args=other),
        first: accept(decision="approve"),
        second: accept(decision="reject"),
    }
    assert await dialogue.answer(asked, answers) is None
    assert sorted(ran) == [
        ("send", "ada@example.com", "Launch"),
        ("send", "b@example.com", "Launch"),
    ]
    told = dict(messages(dialogue))
    assert told["1"] == "sent to ada@example.com"
    assert "was not executed" in told["2"]
    assert "replaced this tool call" in told["3"]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_a_rerun_of_the_call_asks_under_the_same_keys(mode: str) -> None:
    calls = (mail("1"), call("delete_file", "2", path="/a"), mail("3"), mail("4"))
    gates = {"send_email": True, "delete_file": {"allowed_decisions": ["approve", "reject"]}}
    rounds = [await reviewed(*calls, mode=mode, **gates).start(INPUT) for _ in range(3)]
    assert rounds[0].requests == rounds[1].requests == rounds[2].requests


# What a gate may say.


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_the_form_has_what_the_decisions_need_and_no_other_is_accepted(mode: str) -> None:
    gate = {"allowed_decisions": ["approve", "reject"]}
    asked = await reviewed(mail(), mode=mode, send_email=gate).start(INPUT)
    [request] = asked.requests.values()
    fields = request["params"]["requestedSchema"]["properties"]
    assert list(fields) == ["decision", "message"]
    assert choices(fields) == ["approve", "reject"]
    for decision in ("edit", "respond", "maybe", "", "APPROVE"):
        told = error(asked, decision=decision, args="{}", message="m")
        assert told.message == "Form content does not match requestedSchema"
        assert told.data["errors"][0]["field"] == "decision"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_a_review_without_reject_ends_the_call_on_decline_and_any_on_cancel(
    mode: str,
) -> None:
    gate = {"allowed_decisions": ["approve", "edit"]}
    asked = await reviewed(mail("1"), mail("2"), mode=mode, send_email=gate).start(INPUT)
    first, second = asked.requests
    for action, text in (("decline", "declined"), ("cancel", "cancelled")):
        reading = read(asked, {first: accept(decision="approve"), second: {"action": action}})
        assert isinstance(reading, Ended)
        assert reading.text == f"The request for input was {text}."
        assert reading.answers == {first: {"type": "approve"}, second: {"action": action}}


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_predicates_and_descriptions_are_the_middleware_s(mode: str) -> None:
    def outside(request: Any) -> bool:
        return not request.tool_call["args"]["to"].endswith("@example.com")

    def describe(tool_call: ToolCall, state: Any, runtime: Any) -> str:
        return f"Send send_email to {tool_call['args']['to']}?"

    gate = {"allowed_decisions": ["approve", "edit"], "when": outside, "description": describe}
    dialogue = reviewed(mail("1"), mail("2", to="eve@evil.example"), mode=mode, send_email=gate)
    asked = await dialogue.start(INPUT)
    [request] = asked.requests.values()
    assert request["params"]["message"] == "Send send_email to eve@evil.example?"
    fixed = {"allowed_decisions": ["approve", "edit"], "description": "Mind send_email."}
    asked = await reviewed(mail(), mode=mode, send_email=fixed).start(INPUT)
    [request] = asked.requests.values()
    assert request["params"]["message"] == "Mind send_email."


# Edits.


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "args",
    [
        None,
        "",
        " ",
        "[]",
        '"x"',
        "5",
        "null",
        "{bad",
        '{"to":"a","to":"b"}',
        '{"subject":"s","to":{"x":1,"x":2}}',
        '{"to":"\\ud800","subject":"s"}',
        '{"to":NaN,"subject":"s"}',
        '{"to":1e999,"subject":"s"}',
        '{"to":18446744073709551616,"subject":"s"}',
        '{"to":' + "9" * 5_000 + "}",
        '{"to":' + "[" * 100_000,
        '{"to":' + "[" * 500 + "]" * 500 + "}",
    ],
)
async def test_arguments_that_are_no_json_object_are_refused_and_nothing_runs(
    mode: str, args: str | None
) -> None:
    asked = await reviewed(mail(), mode=mode).start(INPUT)
    content = {} if args is None else {"args": args}
    told = error(asked, decision="edit", **content)
    assert told.message == "Form content does not match requestedSchema"
    assert told.data["errors"][0]["field"] == "args"
    assert ran == []


@pytest.mark.anyio
async def test_batched_edits_are_checked_to_be_an_object_and_the_tool_checks_the_rest() -> None:
    dialogue = reviewed(mail())
    asked = await dialogue.start(INPUT)
    [key] = asked.requests
    assert await dialogue.answer(asked, {key: accept(decision="edit", args='{"to": 5}')}) is None
    assert ran == []
    [(_, told)] = messages(dialogue)
    assert "subject" in told


@pytest.mark.anyio
async def test_per_call_edits_that_break_the_tool_s_types_are_refused_and_name_the_reason() -> None:
    dialogue = reviewed(mail(), mode="per_call")
    asked = await dialogue.start(INPUT)
    told = error(asked, decision="edit", args='{"to":"a@example.com"}')
    assert told.message == VECTORS["per_call_bad_edit_message"]
    [key] = asked.requests
    reason = '"subject" is a required property'
    assert told.data == {"errors": [{"key": key, "field": "args", "reason": reason}]}
    told = error(asked, decision="edit", args='{"to":5,"subject":"s"}')
    assert told.message == 'The decision does not fit the tool: 5 is not of type "string"'
    assert ran == []
    fitting = accept(decision="edit", args='{"to":"b@example.com","subject":"s","cc":"c"}')
    assert await dialogue.answer(asked, {key: fitting}) is None
    assert ran == [("send", "b@example.com", "s")]


@pytest.mark.anyio
@pytest.mark.parametrize("allowed", [["edit"], ["approve", "edit"], ALL])
async def test_a_per_call_edit_is_checked_whatever_else_is_allowed(allowed: list[str]) -> None:
    gate = {"allowed_decisions": allowed}
    asked = await reviewed(mail(), mode="per_call", send_email=gate).start(INPUT)
    told = error(asked, decision="edit", args='{"to":"a@example.com"}')
    assert told.message == VECTORS["per_call_bad_edit_message"]


def test_a_respond_needs_a_message() -> None:
    asked = ask([batch(action())])
    for content in ({}, {"message": ""}, {"message": " \t\n"}):
        told = error(asked, decision="respond", **content)
        assert told.data["errors"][0]["field"] == "message"
    assert decisions(asked, accept(decision="respond", message=" yes ")) == [
        {"type": "respond", "message": " yes "}
    ]


def test_the_name_of_an_edited_call_never_comes_from_the_client() -> None:
    asked = ask([batch(action())])
    args = '{"name": "delete_file", "args": {}}'
    [decision] = decisions(asked, accept(decision="edit", args=args, name="delete_file"))
    assert decision == {
        "type": "edit",
        "edited_action": {"name": "send_email", "args": {"name": "delete_file", "args": {}}},
    }


# JavaScript.


def test_javascript_s_batched_shape_gets_its_own_spelling() -> None:
    value = {
        "actionRequests": [
            {"name": "execute_sql", "arguments": {"q": "1"}, "description": "execute_sql?"},
            {"name": "send_email", "args": {"to": "a"}, "description": "send_email?"},
        ],
        "reviewConfigs": [
            {"actionName": "execute_sql", "allowedDecisions": ["approve", "reject", "edit"]},
            {"actionName": "send_email", "allowedDecisions": ALL},
        ],
    }
    asked = ask([Pending(id="1", value=value, schema=None)])
    sql, email = asked.requests.values()
    assert sql["params"]["message"] == "execute_sql?"
    assert choices(sql["params"]["requestedSchema"]["properties"]) == ["approve", "reject", "edit"]
    assert email["params"]["requestedSchema"]["properties"]["args"]["default"] == '{"to":"a"}'
    assert decisions(asked, accept(decision="edit", args='{"q":"2"}'), {"action": "decline"}) == [
        {"type": "edit", "editedAction": {"name": "execute_sql", "args": {"q": "2"}}},
        {"type": "reject"},
    ]


def test_configs_in_another_order_than_the_calls_are_found_by_name() -> None:
    value = {
        "action_requests": [action(), action(name="x", description="x")],
        "review_configs": [
            {"action_name": "x", "allowed_decisions": ["reject"]},
            {"action_name": "send_email", "allowed_decisions": ["approve"]},
        ],
    }
    asked = ask([Pending(id="1", value=value, schema=None)])
    fields = [each["params"]["requestedSchema"]["properties"] for each in asked.requests.values()]
    assert [choices(each) for each in fields] == [["approve"], ["reject"]]


def test_one_config_for_each_tool_serves_all_its_calls() -> None:
    value = {
        "actionRequests": [action(), action(name="x", description="x"), action()],
        "reviewConfigs": [
            {"actionName": "x", "allowedDecisions": ["reject"]},
            {"actionName": "send_email", "allowedDecisions": ["approve"]},
        ],
    }
    asked = ask([Pending(id="1", value=value, schema=None)])
    fields = [each["params"]["requestedSchema"]["properties"] for each in asked.requests.values()]
    assert [choices(each) for each in fields] == [["approve"], ["reject"], ["approve"]]


def test_a_per_call_schema_in_javascript_s_spelling_is_answered_in_it() -> None:
    edit = {
        "type": "object",
        "properties": {
            "type": {"type": "string", "const": "edit"},
            "editedAction": {
                "type": "object",
                "properties": {"args": {"required": ["to"], "type": "object"}},
            },
        },
        "required": ["type", "editedAction"],
    }
    approve = {"type": "object", "properties": {"type": {"enum": ["approve"]}}}
    asked = ask([approval({"anyOf": [approve, edit]})])
    [key] = asked.requests
    reading = read(asked, {key: accept(decision="edit", args='{"to":"b"}')})
    assert isinstance(reading, Resume)
    assert reading.values == {
        "1": {"type": "edit", "editedAction": {"name": "send_email", "args": {"to": "b"}}}
    }
    told = error(asked, decision="edit", args="{}")
    assert told.message == 'The decision does not fit the tool: "to" is a required property'


# Schemas that can't be used for the check.


@pytest.mark.parametrize(
    "args", [{"$ref": "https://example.com/args.json"}, {"$ref": "#/$defs/nowhere"}, {"type": 5}]
)
def test_a_schema_that_points_outside_itself_is_asked_unchecked_and_never_fetched(
    args: dict[str, Any],
) -> None:
    edit = {
        "properties": {"type": {"const": "edit"}, "edited_action": {"properties": {"args": args}}}
    }
    reject = {"properties": {"type": {"const": "reject"}}}
    asked = ask([approval({"oneOf": [edit, reject]})])
    [key] = asked.requests
    reading = read(asked, {key: accept(decision="edit", args='{"any":"thing"}')})
    assert isinstance(reading, Resume)
    assert reading.values["1"]["edited_action"]["args"] == {"any": "thing"}
    assert "edited_action" in reading.values["1"]


def test_a_tool_approval_without_a_schema_can_not_be_asked() -> None:
    value = {"type": "tool_approval", **action()}
    assert "response_schema" in refusal(Pending(id="1", value=value, schema=None))


# What a reviewer sees.


def test_a_call_without_a_description_is_asked_by_its_name() -> None:
    bare = {"name": "send_email", "args": {"to": "a"}}
    for described in (bare, {**bare, "description": ""}, {**bare, "description": None}):
        assert shown(batch(described))[0] == "Run send_email?"


def test_long_arguments_are_shown_whole() -> None:
    command = "echo " + "x" * 5_000 + "; rm -rf /"
    message, fields = shown(batch(action(args={"command": command})))
    assert message == "Send send_email?"
    assert json.loads(fields["args"]["default"]) == {"command": command}


def test_nothing_in_prefilled_arguments_can_hide_and_other_text_stays_readable() -> None:
    hidden = "\x1b[2K\rAllowed: yes\u202egnp.exe\u200b\u2066\x9b\U000e0041\ufeff"
    args = {"cmd": hidden, "name": "Grüße 👩\u200d💻"}
    _, fields = shown(batch(action(args=args)))
    default: str = fields["args"]["default"]
    assert "Grüße 👩\u200d💻" in default
    assert default.replace("\u200d", "").isprintable()
    assert json.loads(default) == args


def test_a_tool_whose_name_is_part_of_a_word_is_named_all_the_same() -> None:
    calls: dict[str, Any] = {"name": "rm", "args": {}, "description": "Please confirm."}
    _, fields = shown(batch(calls))
    assert fields["decision"]["description"] == "Tool: rm"
    _, fields = shown(batch({**calls, "description": "Run `rm`?"}))
    assert "description" not in fields["decision"]


def test_arguments_that_a_description_shows_with_something_hidden_are_shown_escaped() -> None:
    args = {"to": "a\u202egro.live@x"}
    raw = f"send: {json.dumps(args, ensure_ascii=False)}"
    calls = {"name": "send", "args": args, "description": raw}
    _, fields = shown(batch(calls, allowed=["approve", "reject"]))
    assert fields["decision"]["description"] == 'Arguments: {"to":"a\\u202egro.live@x"}'


@pytest.mark.parametrize("mode", MODES)
def test_a_description_that_hides_the_tool_or_its_arguments_is_made_good_in_the_form(
    mode: str,
) -> None:
    calls = {
        "name": "shell",
        "args": {"command": "rm -rf /"},
        "description": "Please approve this.",
    }
    if mode == "batched":
        pending = batch(calls, allowed=["approve", "reject"])
    else:
        types = [{"properties": {"type": {"const": each}}} for each in ("approve", "reject")]
        pending = approval({"oneOf": types}, **calls)
    message, fields = shown(pending)
    assert message == "Please approve this."
    assert fields["decision"]["description"] == ('Tool: shell\nArguments: {"command":"rm -rf /"}')
    described = {**calls, "description": 'shell: {"command": "rm -rf /"}'}
    _, fields = shown(batch(described, allowed=["approve", "reject"]))
    assert "description" not in fields["decision"]


def test_arguments_too_large_to_prefill_are_asked_without_the_edit_and_say_so() -> None:
    huge = {"text": "x" * 1_100_000}
    message, fields = shown(batch(action(args=huge, description=f"send_email {huge}")))
    assert huge["text"] in message
    assert list(fields) == ["decision", "message"]
    assert choices(fields) == ["approve", "reject", "respond"]
    assert fields["decision"]["description"] == "The arguments are too large to edit here."


def test_arguments_too_large_to_prefill_can_not_be_asked_when_nothing_but_edit_is_allowed() -> None:
    huge = {"text": "x" * 1_100_000}
    text = refusal(batch(action(args=huge, description=f"send_email {huge}"), allowed=["edit"]))
    assert "Allow another decision" in text


@pytest.mark.parametrize("allowed", [ALL, ["approve", "edit"], ["approve", "reject"]])
@pytest.mark.parametrize("description", ["Please approve this.", "Send send_email?"])
def test_arguments_too_large_for_the_form_that_no_description_shows_are_in_the_message(
    description: str, allowed: list[str]
) -> None:
    huge = {"text": "x" * 1_100_000 + "\u202e"}
    message, fields = shown(batch(action(args=huge, description=description), allowed=allowed))
    first, *rest = message.split("\n\n")
    assert first == description
    assert ("Tool: send_email" in rest) == ("send_email" not in description)
    assert json.loads(rest[-1].removeprefix("Arguments: ")) == huge
    assert message.replace("\n", "").isprintable()
    assert choices(fields) == [each for each in allowed if each != "edit"]
    told = "The arguments are too large to edit here." if "edit" in allowed else None
    assert fields["decision"].get("description") == told


# What can't be reviewed.


@pytest.mark.parametrize(
    ("pending", "reason"),
    [
        (batch(), "names none"),
        (batch({"name": "x"}), 'no "name" or no "args"'),
        (batch({"args": {}}), 'no "name" or no "args"'),
        (batch(action(args="{}")), 'no "name" or no "args"'),
        (batch(action(), allowed=[]), "which decisions"),
        (batch(action(), allowed=["defer", 5, ["approve"], None]), "which decisions"),
        (batch(action(), allowed=None), "which decisions"),
        (batch(action(), review_configs=[]), "which decisions"),
        (batch(action(), review_configs=[{"action_name": "y"}]), "which decisions"),
        (batch(action(), review_configs=["send_email"]), "which decisions"),
        (batch(action(), action_requests=["send_email"]), 'no "name" or no "args"'),
    ],
)
def test_a_review_that_does_not_say_enough_can_not_be_asked(pending: Pending, reason: str) -> None:
    assert reason in refusal(pending)


def test_a_decision_that_nobody_could_word_is_not_offered() -> None:
    _, fields = shown(batch(action(), allowed=["approve", "defer", "approve"]))
    assert choices(fields) == ["approve"]


# Laws.


@given(
    strategies.objects("action_requests", "review_configs", "actionRequests", "reviewConfigs")
    | strategies.objects("name", "args", "description").map(
        lambda each: {"action_requests": [each], "review_configs": [{"allowed_decisions": ALL}]}
    ),
    strategies.objects("oneOf", "anyOf", "properties", "$defs", "$ref"),
)
def test_any_review_is_asked_or_told_why_not(value: dict[str, Any], schema: dict[str, Any]) -> None:
    single: dict[str, Any] = {"type": "tool_approval", "name": "t", "args": {}, **value}
    for each, its_schema in ((value, None), (value, schema), (single, schema)):
        with suppress(CannotAsk):
            assert ask([Pending(id="1", value=each, schema=its_schema)]).requests


@given(strategies.objects("decision", "message", "args"))
def test_any_answer_is_a_decision_that_the_call_allows_or_refused(content: dict[str, Any]) -> None:
    asked = ask([batch(action(), allowed=["approve", "edit"])])
    try:
        [decision] = decisions(asked, {"action": "accept", "content": content})
    except InvalidParams:
        return
    assert decision["type"] in ("approve", "edit")
    assert decision["type"] == content["decision"]
