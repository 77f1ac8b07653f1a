"""The reference's rules, one by one, over HTTP: a served process, the example agents, a real
database. The expected bodies are those that the reference prints (`tests/vectors.json`)."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.protocol import CAPABILITIES_KEY, LATEST, VERSION_KEY
from tests.calling import Pause, accept, ask, asked, call, ended, failed, got, refused
from tests.clock import move
from tests.served import ASKING, Served, error, post, post_older, result, serving
from tests.tables import everything, rows

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "vectors.json").read_text(encoding="utf-8")
)


@pytest.fixture
def here(database: str) -> Iterator[Served]:
    """A process on a database of this test's own."""
    with serving(database) as process:
        yield process


# Pause and resume a tool call.


def test_a_question_of_an_agent_reaches_the_client_and_its_answer_the_agent(
    served: Served,
) -> None:
    vector = VECTORS["relay"]
    response = call(served, "greeter")
    questions, state = asked(response)
    assert questions == {
        vector["key"]: {"method": "elicitation/create", "params": vector["params"]}
    }
    assert "serverInfo" in str(result(response)["_meta"])
    answers = {vector["key"]: accept(name="Ada")}
    text = ended(call(served, "greeter", inputResponses=answers, requestState=state))
    assert text == vector["result_text"]


def test_without_the_version_header_a_pause_is_an_error_result_with_the_questions(
    served: Served,
) -> None:
    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": "greeter", "arguments": {}},
    }
    answer = httpx.post(served.url, json=body, timeout=30).json()["result"]
    assert answer["isError"] is True
    assert answer["content"][0]["text"] == VECTORS["legacy_pause"]
    [interrupt] = json.loads(answer["content"][1]["text"])
    assert "What is your name?" in json.dumps(interrupt)
    assert "resultType" not in answer


def test_several_questions_are_asked_in_one_round(served: Served) -> None:
    questions, _ = asked(call(served, "pair"))
    assert len(questions) == 2


def test_a_missing_answer_asks_the_same_questions_again_with_the_same_state(
    served: Served,
) -> None:
    first = call(served, "pair")
    questions, state = asked(first)
    key = next(iter(questions))
    for answers in ({}, {key: accept(response="x")}, {"undefined": accept(response="x")}):
        again = call(served, "pair", inputResponses=answers, requestState=state)
        assert asked(again) == (questions, state)
    assert asked(call(served, "pair", requestState=state)) == (questions, state)


def test_answers_to_questions_that_were_not_asked_are_ignored(served: Served) -> None:
    _, state = asked(call(served, "greeter"))
    answers = {"user_name": accept(name="Ada"), "undefined": accept(name="Eve"), "": {}}
    text = ended(call(served, "greeter", inputResponses=answers, requestState=state))
    assert text == VECTORS["relay"]["result_text"]


def test_answers_in_the_first_call_answer_the_first_round(here: Served, database: str) -> None:
    text = ended(call(here, "greeter", inputResponses={"user_name": accept(name="Ada")}))
    assert text == VECTORS["relay"]["result_text"]
    assert set(rows(database).values()) == {0}


def test_answers_sent_more_than_once_resume_the_agent_once(served: Served) -> None:
    _, state = asked(call(served, "greeter"))
    answers = {"user_name": accept(name="Ada")}
    bodies = [
        result(call(served, "greeter", inputResponses=answers, requestState=state))
        for _ in range(3)
    ]
    assert bodies[0] == bodies[1] == bodies[2]


def test_an_invalid_answer_fails_and_the_round_stays_open(served: Served) -> None:
    vector = VECTORS["typed"]
    questions, state = asked(call(served, "deployment"))
    (key,) = questions
    response = call(
        served, "deployment", inputResponses={key: vector["bad_answer"]}, requestState=state
    )
    assert response.status_code == vector["bad_error"]["http"]
    assert error(response)["code"] == vector["bad_error"]["code"]
    assert error(response)["message"] == vector["bad_error"]["message"]
    text = ended(
        call(served, "deployment", inputResponses={key: vector["answer"]}, requestState=state)
    )
    assert text == vector["result_text"]


def test_an_invalid_answer_in_a_first_call_leaves_nothing(here: Served, database: str) -> None:
    key = VECTORS["typed"]["key"]
    response = call(here, "deployment", inputResponses={key: VECTORS["typed"]["bad_answer"]})
    assert error(response)["code"] == -32602
    assert set(rows(database).values()) == {0}


@pytest.mark.parametrize("change", ["modified", "other tool", "other arguments"])
def test_an_invalid_state_is_refused(served: Served, change: str) -> None:
    _, state = asked(call(served, "greeter"))
    name = "region" if change == "other tool" else "greeter"
    arguments = {"greeting": "x"} if change == "other arguments" else {}
    token = state[:-1] + ("A" if state[-1] != "A" else "B") if change == "modified" else state
    answers = {"user_name": accept(name="Ada")}
    response = call(served, name, arguments, inputResponses=answers, requestState=token)
    vector = VECTORS["invalid_state"]
    assert response.status_code == vector["http"]
    assert error(response) == {"code": vector["code"], "message": vector["message"]}
    ended(call(served, "greeter", inputResponses=answers, requestState=state))


def test_a_state_is_the_same_for_no_arguments_and_for_empty_ones(served: Served) -> None:
    _, state = asked(post(served.url, "tools/call", name="greeter"))
    ended(
        call(
            served, "greeter", inputResponses={"user_name": accept(name="Ada")}, requestState=state
        )
    )


def test_a_request_that_finishes_without_a_state_leaves_nothing(
    here: Served, database: str
) -> None:
    ended(call(here, "echo", {"message": "hello"}))
    assert set(rows(database).values()) == {0}


def test_a_finished_call_is_told_again_for_10_minutes(here: Served, database: str) -> None:
    _, state = asked(call(here, "greeter"))
    answers = {"user_name": accept(name="Ada")}
    first = result(call(here, "greeter", inputResponses=answers, requestState=state))
    move(database, seconds=590)
    again = call(here, "greeter", inputResponses=answers, requestState=state)
    assert result(again) == first
    move(database, seconds=601)
    late = call(here, "greeter", inputResponses=answers, requestState=state)
    assert error(late)["message"] == VECTORS["invalid_state"]["message"]


def test_a_paused_call_expires_24_hours_after_its_newest_round(here: Served, database: str) -> None:
    questions, state = asked(call(here, "survey"))
    move(database, seconds=20 * 3600)
    questions, state = asked(
        call(here, "survey", inputResponses=_any(questions), requestState=state)
    )
    move(database, seconds=40 * 3600)
    asked(call(here, "survey", requestState=state))
    move(database, seconds=44 * 3600 + 1)
    late = call(here, "survey", inputResponses=_any(questions), requestState=state)
    assert error(late)["message"] == VECTORS["invalid_state"]["message"]


def _any(questions: dict[str, Any]) -> dict[str, Any]:
    """Some answer that fits each question."""
    answers: dict[str, Any] = {}
    for key, question in questions.items():
        content: dict[str, Any] = {}
        for name, field in question["params"]["requestedSchema"]["properties"].items():
            kinds = {"string": "a", "integer": field.get("minimum", 1), "boolean": True}
            content[name] = field["enum"][0] if "enum" in field else kinds[field["type"]]
        answers[key] = {"action": "accept", "content": content}
    return answers


def test_three_rounds_have_three_states_and_each_is_told_again(served: Served) -> None:
    questions, state = asked(call(served, "survey"))
    seen = [(questions, state)]
    for _ in range(2):
        answers = _any(questions)
        questions, state = asked(call(served, "survey", inputResponses=answers, requestState=state))
        seen.append((questions, state))
    assert len({state for _, state in seen}) == 3
    text = ended(call(served, "survey", inputResponses=_any(questions), requestState=state))
    for position in (0, 1):
        again = call(
            served,
            "survey",
            inputResponses=_any(seen[position][0]),
            requestState=seen[position][1],
        )
        assert asked(again) == seen[position + 1]
    repeated = call(served, "survey", inputResponses=_any(questions), requestState=state)
    assert ended(repeated) == text


@pytest.mark.parametrize(("first", "second"), [("Ada", "Eve"), ("Ada", None), (None, None)])
def test_the_context_of_a_request_is_that_of_the_run_that_it_leads_to(
    asking: Served, first: str | None, second: str | None
) -> None:
    def context(name: str | None) -> dict[str, Any]:
        return {} if name is None else {"context": {"name": name}}

    questions, state = asked(call(asking, "contextual", **context(first)))
    answers = dict.fromkeys(questions, accept(response="I"))
    given: dict[str, Any] = {"inputResponses": answers, "requestState": state, **context(second)}
    text = ended(call(asking, "contextual", **given))
    assert json.loads(text)["seen"] == [first or "nobody", f"I {second or 'nobody'}"]


def test_a_context_that_the_agent_refuses_runs_nothing_and_the_round_stays_open(
    asking: Served,
) -> None:
    refused(call(asking, "contextual", context={"name": 5}))
    paused = Pause.of(asking, "contextual", context={"name": "Ada"})
    assert "context" in refused(paused.reply(accept(response="I"), context={}))["message"]
    assert json.loads(ended(paused.reply(accept(response="I"))))["seen"] == ["Ada", "I Ada"]


# Ask a text question.


def test_a_string_is_asked_as_a_form_with_one_field(served: Served) -> None:
    vector = VECTORS["text"]
    questions, state = asked(call(served, "region"))
    assert questions == {
        vector["key"]: {"method": "elicitation/create", "params": vector["params"]}
    }
    text = ended(
        call(
            served,
            "region",
            inputResponses={vector["key"]: vector["answer"]},
            requestState=state,
        )
    )
    assert json.loads(text) == {"region": vector["resume"]}


@pytest.mark.parametrize(("action", "text"), [("decline", "declined"), ("cancel", "cancelled")])
def test_a_declined_or_cancelled_text_question_ends_the_call_with_an_error_result(
    served: Served, action: str, text: str
) -> None:
    _, state = asked(call(served, "region"))
    answers = {VECTORS["text"]["key"]: {"action": action}}
    response = call(served, "region", inputResponses=answers, requestState=state)
    assert failed(response) == VECTORS["text"][text]
    assert failed(call(served, "region", inputResponses=answers)) == VECTORS["text"][text]


# Ask for typed input.


def test_a_response_schema_is_asked_as_its_form(served: Served) -> None:
    vector = VECTORS["typed"]
    questions, _ = asked(call(served, "deployment"))
    assert questions == {
        vector["key"]: {"method": "elicitation/create", "params": vector["params"]}
    }


@pytest.mark.parametrize(
    ("kind", "content", "type", "arrived"),
    [
        (
            "model",
            {"name": "Ada"},
            "Model",
            {"name": "Ada", "count": 3, "loud": True, "note": None},
        ),
        ("address", {"street": "A"}, "Address", {"street": "A", "number": 1}),
        ("pair", {"left": "L"}, "dict", {"left": "L"}),
        ("region", {"response": "eu-west-1"}, "Region", "eu-west-1"),
        ("date", {"response": "2026-02-28"}, "date", "2026-02-28"),
        ("int", {"response": 3.0}, "int", 3),
        ("optional", {}, "NoneType", None),
    ],
)
def test_an_answer_arrives_as_the_type_that_was_asked_for(
    asking: Served, kind: str, content: dict[str, Any], type: str, arrived: Any
) -> None:
    told = json.loads(ended(ask(asking, kind=kind).reply(accept(**content))))
    assert told == {"got": arrived, "type": type}


def test_what_only_the_type_itself_can_judge_is_refused_in_a_first_call_too(
    asking: Served,
) -> None:
    paused = ask(asking, kind="even")
    odd, even = ({paused.key: accept(number=number)} for number in (3, 4))
    for response in (
        paused.send(odd),
        call(asking, "one", paused.arguments, inputResponses=odd),
    ):
        assert refused(response)["message"] == VECTORS["typed"]["bad_error"]["message"]
        assert "an even number" in error(response)["data"]["errors"][0]["reason"]
    assert got(paused.send(even)) == got(call(asking, "one", paused.arguments, inputResponses=even))


# Relay elicitation requests.


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_refused_relayed_question_is_passed_to_the_agent(served: Served, action: str) -> None:
    _, state = asked(call(served, "greeter"))
    answers = {"user_name": {"action": action, "content": {"name": "left over"}}}
    text = ended(call(served, "greeter", inputResponses=answers, requestState=state))
    assert text == VECTORS["relay"]["declined_result_text"]


def test_a_url_question_carries_its_page(served: Served) -> None:
    vector = VECTORS["url"]
    questions, state = asked(call(served, "calendar"))
    assert questions == {
        vector["key"]: {"method": "elicitation/create", "params": vector["params"]}
    }
    answers = {vector["key"]: {"action": "accept"}}
    text = ended(call(served, "calendar", inputResponses=answers, requestState=state))
    assert json.loads(text) == {"status": "connected"}


def test_a_client_without_url_mode_is_told_that_it_is_needed(here: Served, database: str) -> None:
    vector = VECTORS["url"]["error_without_url"]
    response = call(here, "calendar", modes=("form",))
    assert response.status_code == vector["http"]
    assert error(response) == {
        "code": vector["code"],
        "message": vector["message"],
        "data": vector["data"],
    }
    assert set(rows(database).values()) == {0}


def test_a_page_is_opened_by_nobody_here_and_no_reference_is_fetched(asking: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        page = {"message": "Open it.", "mode": "url", "url": url}
        relay = {"type": "mcp_elicitation", "requests": {"page": page}}
        assert got(ask(asking, relay).reply({"action": "accept"})) == {
            "responses": {"page": {"action": "accept"}}
        }
        approval: dict[str, Any] = {
            "type": "tool_approval",
            "name": "t",
            "args": {},
            "description": "t?",
        }
        edit = {
            "properties": {
                "type": {"const": "edit"},
                "edited_action": {"properties": {"args": {"$ref": url}}},
            }
        }
        paused = ask(asking, approval, schema=edit)
        assert got(paused.reply(accept(decision="edit", args='{"a":1}'))) == {
            "type": "edit",
            "edited_action": {"name": "t", "args": {"a": 1}},
        }
        assert failed(call(asking, "one", {"value": "Q?", "schema": {"$ref": url}})).startswith(
            VECTORS["cannot_ask_prefix"]
        )
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()


def test_a_round_that_needs_both_modes_says_so_and_names_both(asking: Served) -> None:
    form = {"message": "F?", "requestedSchema": {"properties": {"x": {"type": "string"}}}}
    page = {"message": "U?", "mode": "url", "url": "https://example.com/"}
    relay = {"type": "mcp_elicitation", "requests": {"f": form, "u": page}}
    for modes, missing in (((), "form and url"), (("form",), "url"), (("url",), "form")):
        told = error(call(asking, "one", {"value": relay}, modes=modes))
        assert told == {
            "code": -32021,
            "message": f"This tool asks for human input and needs {missing} elicitation.",
            "data": {"requiredCapabilities": {"elicitation": {"form": {}, "url": {}}}},
        }


def test_a_page_in_a_later_round_waits_10_minutes_for_a_client_that_can_open_it(
    database: str, tmp_path: Path
) -> None:
    vector = VECTORS["url"]["error_without_url"]
    with serving(database, config=ASKING) as process:
        arguments = {"journal": str(tmp_path)}
        late, soon = (Pause.of(process, "url_later", arguments, modes=("form",)) for _ in range(2))
        for paused in (late, soon):
            told = error(paused.reply(accept(response="x")))
            assert (told["message"], told["data"]) == (vector["message"], vector["data"])
        move(database, seconds=590)
        questions, _ = asked(soon.reply(accept(response="x"), modes=("form", "url")))
        assert questions["page"]["params"]["mode"] == "url"
        move(database, seconds=601)
        response = late.reply(accept(response="x"), modes=("form", "url"))
        assert refused(response)["message"] == VECTORS["invalid_state"]["message"]
        asked(soon.reply(accept(response="x"), modes=("form", "url")))


def test_a_breakpoint_after_a_question_ends_the_call_with_an_error_result(asking: Served) -> None:
    paused = Pause.of(asking, "stops_later")
    text = failed(paused.reply(accept(response="yes")))
    assert "interrupt_before" in text
    assert failed(paused.reply(accept(response="yes"))) == text


# Support clients without elicitation.


@pytest.mark.parametrize("capabilities", [{}, {"sampling": {}}])
def test_a_client_without_elicitation_is_told_that_it_is_needed(
    served: Served, capabilities: dict[str, Any]
) -> None:
    vector = VECTORS["form_missing"]
    meta = {VERSION_KEY: LATEST, CAPABILITIES_KEY: capabilities}
    response = post(served.url, "tools/call", name="region", arguments={}, _meta=meta)
    assert response.status_code == vector["http"]
    assert error(response) == {
        "code": vector["code"],
        "message": vector["message"],
        "data": vector["data"],
    }


def test_elicitation_without_modes_means_form(served: Served) -> None:
    meta: dict[str, Any] = {VERSION_KEY: LATEST, CAPABILITIES_KEY: {"elicitation": {}}}
    asked(post(served.url, "tools/call", name="region", arguments={}, _meta=meta))


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
def test_an_older_client_gets_an_error_result_when_a_tool_pauses(
    served: Served, version: str
) -> None:
    response = post_older(served.url, "tools/call", name="region", arguments={}, version=version)
    answer = response.json()["result"]
    assert answer["isError"] is True
    assert answer["content"][0]["text"] == VECTORS["legacy_pause"]
    assert VECTORS["text"]["interrupt"] in answer["content"][1]["text"]


def test_where_threads_are_disabled_a_pause_is_an_error_result(
    database: str, tmp_path: Path
) -> None:
    agents = Path(__file__).parent.parent / "agents"
    config = tmp_path / "langgraph.json"
    config.write_text(
        json.dumps(
            {
                "dependencies": ["."],
                "graphs": {"region": f"{agents}/region.py:graph"},
                "http": {"disable_threads": True},
            }
        ),
        encoding="utf-8",
    )
    with serving(database, config=config) as process:
        assert failed(call(process, "region")) == VECTORS["cannot_resume"]
        older = post_older(process.url, "tools/call", name="region", arguments={})
        assert older.json()["result"]["content"][0]["text"] == VECTORS["legacy_pause"]
    assert set(rows(database).values()) == {0}


# What is kept.


def test_a_first_call_that_fails_or_is_refused_or_declined_leaves_nothing(database: str) -> None:
    with serving(database, config=ASKING) as process:
        key = VECTORS["text"]["key"]
        question = {"value": VECTORS["text"]["interrupt"]}
        failed(call(process, "fails"))
        failed(call(process, "one", {"value": 5}))
        failed(call(process, "one", {"value": "Q?", "schema": 5}))
        failed(call(process, "one", question, inputResponses={key: {"action": "decline"}}))
        refused(call(process, "one", question, inputResponses={key: accept(response=5)}))
        refused(call(process, "one", question, inputResponses={key: {"action": "no"}}))
        refused(call(process, "one", question, requestState="forged"))
        refused(call(process, "nobody"))
        refused(call(process, "contextual", context={"name": 5}))
        error(call(process, "one", question, modes=()))
        post_older(process.url, "tools/call", name="one", arguments=question)
    assert set(rows(database).values()) == {0}


def test_neither_answers_nor_states_nor_context_are_stored_or_logged(
    here: Served, database: str
) -> None:
    """LangGraph's own checkpoint holds what the agent keeps of an answer; the last one of a call
    that finished is never written."""
    context = {"token": "planted-context"}
    questions, state = asked(call(here, "region", context=context))
    answers = {next(iter(questions)): accept(response="planted-answer")}
    ended(call(here, "region", inputResponses=answers, requestState=state, context=context))
    refused = {next(iter(questions)): accept(response=["planted-wrong"])}
    call(here, "region", inputResponses=refused, requestState=state)
    here.stop()
    stored = everything(database)
    for secret in ("planted-context", "planted-wrong", state, state.split(".")[1]):
        assert secret not in stored
        assert secret not in here.log()
    assert "planted-answer" not in here.log()
