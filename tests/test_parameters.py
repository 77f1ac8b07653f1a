"""`params` of each method: the last rung before any work."""

from typing import Any

import pytest

from core.errors import InvalidParams
from core.parameters import cursor, requested_version, tool_call


def test_everything_that_a_call_may_carry_is_read() -> None:
    call = tool_call(
        {
            "name": "greeter",
            "arguments": {"a": 1},
            "context": {"b": 2},
            "inputResponses": {"k": {"action": "accept"}},
            "requestState": "s",
        },
        modern=True,
    )
    assert call.name == "greeter"
    assert call.arguments == {"a": 1}
    assert call.context == {"b": 2}
    assert call.responses == {"k": {"action": "accept"}}
    assert call.request_state == "s"


def test_absent_members_are_absent_and_absent_arguments_are_empty() -> None:
    call = tool_call({"name": "greeter"}, modern=True)
    assert (call.arguments, call.context, call.responses, call.request_state) == (
        {},
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    "member", ["name", "arguments", "context", "requestState", "inputResponses"]
)
@pytest.mark.parametrize("value", [None, 5, True, [], ["a"]])
@pytest.mark.parametrize("modern", [True, False])
def test_a_member_of_the_wrong_type_is_refused(member: str, value: Any, modern: bool) -> None:
    with pytest.raises(InvalidParams):
        tool_call({"name": "greeter", member: value}, modern=modern)


@pytest.mark.parametrize("member", ["arguments", "context", "inputResponses"])
def test_a_text_is_no_object(member: str) -> None:
    with pytest.raises(InvalidParams):
        tool_call({"name": "greeter", member: "{}"}, modern=True)


@pytest.mark.parametrize("member", ["name", "requestState"])
def test_an_object_is_no_text(member: str) -> None:
    with pytest.raises(InvalidParams):
        tool_call({"name": "greeter", member: {}}, modern=True)


@pytest.mark.parametrize("response", [None, 5, True, "yes", []])
def test_a_response_that_is_no_object_is_refused(response: Any) -> None:
    with pytest.raises(InvalidParams):
        tool_call({"name": "greeter", "inputResponses": {"k": response}}, modern=True)


def test_a_missing_name_is_refused() -> None:
    with pytest.raises(InvalidParams):
        tool_call({}, modern=True)


@pytest.mark.parametrize("response", [{}, {"action": "accept"}, {"resultType": "complete"}])
def test_a_response_may_carry_anything_that_is_an_object(response: dict[str, Any]) -> None:
    assert tool_call({"name": "a", "inputResponses": {"k": response}}, modern=True).responses


@pytest.mark.parametrize("member", [{"requestState": "s"}, {"inputResponses": {}}])
def test_an_older_client_is_told_which_header_answers_need(member: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match="MCP-Protocol-Version: 2026-07-28"):
        tool_call({"name": "greeter", **member}, modern=False)


def test_an_older_client_may_send_a_context() -> None:
    assert tool_call({"name": "a", "context": {"b": 2}}, modern=False).context == {"b": 2}


@pytest.mark.parametrize("value", [None, 5, {}, []])
def test_a_cursor_or_version_of_the_wrong_type_is_refused(value: Any) -> None:
    with pytest.raises(InvalidParams):
        cursor({"cursor": value})
    with pytest.raises(InvalidParams):
        requested_version({"protocolVersion": value})
    assert cursor({}) is None
