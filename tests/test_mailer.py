"""The reference's section on reviews over HTTP, in both modes: the example `mailer`, and agents
whose tools allow less than it does."""

import json
from pathlib import Path
from typing import Any

import pytest

from core.cannot_ask import PREFIX
from tests.agents.journal import noted
from tests.calling import Pause, accept, call, ended, failed, refused
from tests.served import Served, error

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "vectors.json").read_text(encoding="utf-8")
)
MISMATCH = "Form content does not match requestedSchema"

pytestmark = pytest.mark.parametrize("mailer", ["mailer", "mailer_per_call"])

ONE = "Write to ada@example.com about Launch"
EQUAL = "Write to ada@example.com and ada@example.com about Launch"


def mail(served: Served, mailer: str, text: str = ONE) -> Pause:
    """A call whose mails are reviewed."""
    return Pause.of(served, mailer, {"messages": [{"role": "user", "content": text}]})


def told(response: Any) -> list[str]:
    """What the model was told of its calls, in order."""
    messages = json.loads(ended(response))["messages"]
    return [each["content"] for each in messages if each["type"] == "tool"]


SENT = 'Sent "Launch" to ada@example.com.'


def test_a_review_is_asked_as_the_reference_prints_it(served: Served, mailer: str) -> None:
    vector = VECTORS["review"]
    params = {
        "message": vector["description"],
        "mode": "form",
        "requestedSchema": vector["requestedSchema"],
    }
    wire = {vector["key"]: {"method": "elicitation/create", "params": params}}
    assert mail(served, mailer).questions == wire


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (accept(decision="approve"), SENT),
        (accept(decision="approve", args="{broken", message="left over"), SENT),
        (accept(decision="reject"), "The tool was not executed"),
        (accept(decision="reject", message=" \n"), "The tool was not executed"),
        (accept(decision="reject", message="Too early"), "with reason: Too early"),
        (accept(decision="respond", message="Sent by hand"), "Sent by hand"),
        ({"action": "decline"}, "The tool was not executed"),
        ({"action": "decline", "content": {"decision": "approve"}}, "The tool was not executed"),
    ],
)
def test_each_answer_is_the_decision_of_the_table(
    served: Served, mailer: str, answer: dict[str, Any], expected: str
) -> None:
    [content] = told(mail(served, mailer).reply(answer))
    assert expected in content
    assert (content == SENT) == (expected == SENT)


def test_an_edit_changes_the_arguments_and_never_the_tool(served: Served, mailer: str) -> None:
    paused = mail(served, mailer)
    args = '{"to": "eve@example.com", "subject": "Größe", "name": "delete"}'
    [content] = told(paused.reply(accept(decision="edit", args=args, name="delete")))
    assert 'Sent "Größe" to eve@example.com.' in content
    assert "a human reviewer replaced this tool call" in content


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ({"decision": "edit"}, "args"),
        ({"decision": "edit", "args": ""}, "args"),
        ({"decision": "edit", "args": "[]"}, "args"),
        ({"decision": "edit", "args": "{bad"}, "args"),
        ({"decision": "edit", "args": {"to": "a"}}, "args"),
        ({"decision": "respond"}, "message"),
        ({"decision": "respond", "message": " \t"}, "message"),
        ({"decision": "maybe"}, "decision"),
        ({}, "decision"),
    ],
)
def test_what_is_no_decision_is_refused_and_may_be_corrected(
    served: Served, mailer: str, content: dict[str, Any], field: str
) -> None:
    paused = mail(served, mailer)
    refusal = refused(paused.reply(accept(**content)))
    assert refusal["message"] == MISMATCH
    assert refusal["data"]["errors"][0]["field"] == field
    assert refusal["data"]["errors"][0]["key"] == paused.key
    assert told(paused.reply(accept(decision="approve"))) == [SENT]


def test_a_cancelled_review_ends_the_call_and_sends_nothing(served: Served, mailer: str) -> None:
    paused = mail(served, mailer)
    assert failed(paused.reply({"action": "cancel"})) == VECTORS["text"]["cancelled"]
    assert failed(paused.reply({"action": "cancel"})) == VECTORS["text"]["cancelled"]
    assert refused(paused.reply(accept(decision="approve")))


def test_of_two_equal_calls_each_has_a_question_and_a_decision(served: Served, mailer: str) -> None:
    paused = mail(served, mailer, EQUAL)
    first, second = sorted(paused.questions)
    assert first == VECTORS["review"]["key"]
    assert second == first.removesuffix("1") + "2"
    answers = {second: accept(decision="reject", message="Once"), first: accept(decision="approve")}
    messages = json.loads(ended(paused.send(answers)))["messages"]
    by_call = {each["tool_call_id"]: each["content"] for each in messages if each["type"] == "tool"}
    assert by_call["call_1"] == SENT
    assert "with reason: Once" in by_call["call_2"]


def test_one_cancelled_review_of_several_ends_the_call(served: Served, mailer: str) -> None:
    paused = mail(served, mailer, EQUAL)
    first, second = sorted(paused.questions)
    answers = {first: accept(decision="approve"), second: {"action": "cancel"}}
    assert failed(paused.send(answers)) == VECTORS["text"]["cancelled"]


def test_an_edit_is_checked_against_the_tool_before_it_runs_or_by_the_tool(
    served: Served, mailer: str
) -> None:
    paused = mail(served, mailer)
    edit = accept(decision="edit", args='{"to": "ada@example.com"}')
    if mailer == "mailer":
        [content] = told(paused.reply(edit))
        assert "subject" in content
        assert "Sent" not in content
    else:
        assert refused(paused.reply(edit))["message"] == VECTORS["per_call_bad_edit_message"]
        assert told(paused.reply(accept(decision="approve"))) == [SENT]


# Tools that allow less.


def propose(
    asking: Served, mailer: str, journal: Path, *calls: tuple[str, dict[str, Any]]
) -> Pause:
    """A call whose model proposes these calls; the tools note what they do in the journal."""
    agent = {"mailer": "batched", "mailer_per_call": "per_call"}[mailer]
    human = {"messages": [{"role": "user", "content": json.dumps(calls)}]}
    return Pause.of(asking, agent, human, context={"journal": str(journal)})


def test_the_form_has_what_the_decisions_need_and_others_are_refused(
    asking: Served, tmp_path: Path, mailer: str
) -> None:
    allowed = {
        "delete_file": (["decision", "args"], ["approve", "edit"]),
        "rename_file": (["decision", "args"], ["edit"]),
        "run_shell": (["decision", "message"], ["approve", "reject"]),
    }
    for tool, (fields, decisions) in allowed.items():
        key = "command" if tool == "run_shell" else "path"
        paused = propose(asking, mailer, tmp_path, (tool, {key: "/a"}))
        assert list(paused.fields) == fields
        assert [each["const"] for each in paused.fields["decision"]["oneOf"]] == decisions
        for decision in {"approve", "edit", "reject", "respond"} - set(decisions):
            content = {"decision": decision, "args": "{}", "message": "m"}
            assert refused(paused.reply(accept(**content)))["message"] == MISMATCH
    assert noted(tmp_path) == {}


def test_a_decline_where_no_rejection_is_allowed_ends_the_call(
    asking: Served, tmp_path: Path, mailer: str
) -> None:
    paused = propose(asking, mailer, tmp_path, ("delete_file", {"path": "/a"}))
    assert failed(paused.reply({"action": "decline"})) == VECTORS["text"]["declined"]
    assert noted(tmp_path) == {}


def test_an_edited_call_runs_once_as_edited(asking: Served, tmp_path: Path, mailer: str) -> None:
    paused = propose(asking, mailer, tmp_path, ("rename_file", {"path": "/a"}))
    edit = accept(decision="edit", args='{"path": "/b"}')
    for _ in range(3):
        ended(paused.reply(edit))
    assert noted(tmp_path) == {"rename:/b": 1}


def test_arguments_that_another_document_describes_are_asked_about_unchecked(
    asking: Served, tmp_path: Path, mailer: str
) -> None:
    paused = propose(asking, mailer, tmp_path, ("lookup", {"what": "x"}))
    ended(paused.reply(accept(decision="edit", args='{"what": 5}')))
    assert noted(tmp_path) == {"lookup": 1}


def test_arguments_too_large_to_prefill_are_asked_about_without_the_edit(
    asking: Served, tmp_path: Path, mailer: str
) -> None:
    large = "x" * 1_100_000
    paused = propose(asking, mailer, tmp_path, ("delete_file", {"path": large}))
    assert list(paused.fields) == ["decision"]
    assert [each["const"] for each in paused.fields["decision"]["oneOf"]] == ["approve"]
    assert large in paused.message
    ended(paused.reply(accept(decision="approve")))
    assert sum(noted(tmp_path).values()) == 1


def test_arguments_too_large_to_prefill_of_a_call_that_allows_nothing_else_can_not_be_asked(
    asking: Served, tmp_path: Path, mailer: str
) -> None:
    agent = {"mailer": "batched", "mailer_per_call": "per_call"}[mailer]
    calls = json.dumps([("rename_file", {"path": "x" * 1_100_000})])
    human = {"messages": [{"role": "user", "content": calls}]}
    response = call(asking, agent, human, context={"journal": str(tmp_path)})
    assert failed(response).startswith(PREFIX)


def test_a_client_that_has_no_forms_is_told_so_and_nothing_is_sent(
    served: Served, mailer: str
) -> None:
    human = {"messages": [{"role": "user", "content": ONE}]}
    response = call(served, mailer, human, modes=("url",))
    assert error(response)["code"] == -32021
