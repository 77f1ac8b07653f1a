"""What an agent tells of itself, as notifications."""

import ast
import math
import re
from datetime import date
from typing import Any

import mcp_types
import pytest

from core.progress import Progress
from tests.served import CHECKOUT


def told(*chunks: tuple[str, Any], token: str | int | None = "t", level: str | None = None) -> Any:
    """The params of all notifications for these chunks, checked against the protocol's types."""
    progress = Progress(token=token, level=level)
    notifications = [each for chunk in chunks for each in progress.notifications(*chunk)]
    types: dict[str, Any] = {
        "notifications/progress": mcp_types.ProgressNotification,
        "notifications/message": mcp_types.LoggingMessageNotification,
    }
    for notification in notifications:
        types[notification["method"]].model_validate(notification)
    return [notification["params"] for notification in notifications]


def wrote(**members: Any) -> tuple[str, Any]:
    return ("custom", members)


def finished(*nodes: str) -> tuple[str, Any]:
    return ("updates", dict.fromkeys(nodes))


def test_what_is_written_is_passed_on_under_the_token() -> None:
    assert told(wrote(progress=0.5, total=2, message="é"), token=0) == [
        {"progressToken": 0, "progress": 0.5, "total": 2, "message": "é"}
    ]


def test_without_any_each_finished_node_is_a_step() -> None:
    chunks = (finished("first"), finished("second", "__metadata__"), finished("__interrupt__"))
    assert told(*chunks) == [
        {"progressToken": "t", "progress": 1, "message": "first"},
        {"progressToken": "t", "progress": 2, "message": "second"},
    ]


def test_an_agent_that_reports_is_not_counted_for() -> None:
    chunks = (wrote(progress=0), finished("first"), wrote(progress=1), finished("second"))
    assert [each["progress"] for each in told(*chunks)] == [0, 1]


def test_reports_count_on_from_the_steps_before_them() -> None:
    chunks = (finished("first"), wrote(progress=0.5, total=1), wrote(progress=1, total=1))
    assert [(each["progress"], each.get("total")) for each in told(*chunks)] == [
        (1, None),
        (1.5, 2),
        (2, 2),
    ]


def test_progress_only_ever_grows() -> None:
    reports = [wrote(progress=each) for each in (0, 5, 5, 3, 6)]
    assert [each["progress"] for each in told(*reports)] == [0, 5, 6]


@pytest.mark.parametrize("progress", [None, "5", True, math.nan, math.inf, 10**400, [1]])
def test_what_is_no_number_is_no_progress(progress: Any) -> None:
    assert told(wrote(progress=progress)) == []


def test_members_of_another_type_are_left_out() -> None:
    assert told(wrote(progress=1, total="2", message=3)) == [{"progressToken": "t", "progress": 1}]


@pytest.mark.parametrize("chunk", [None, "text", 5, [], ("a", 1), {}, {"tokens": "a"}])
def test_what_is_written_for_others_is_passed_over(chunk: Any) -> None:
    assert told(("custom", chunk), level="debug") == []


def test_nothing_is_told_to_a_client_that_asked_for_nothing() -> None:
    chunks = (finished("first"), wrote(progress=1), wrote(level="error", data=1))
    assert told(*chunks, token=None) == []
    assert not Progress(token=None, level=None).wanted
    assert Progress(token=0, level=None).wanted
    assert Progress(token=None, level="debug").wanted


def test_messages_come_from_the_wanted_level_on() -> None:
    levels = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    chunks = [wrote(level=level, data=level) for level in levels]
    assert [each["level"] for each in told(*chunks, level="warning")] == list(levels[3:])
    assert told(*chunks, level=None) == []


def test_a_message_holds_any_value_that_has_a_json_form() -> None:
    chunks = (wrote(level="info", data={"day": date(2026, 7, 28)}, logger="a"),)
    assert told(*chunks, level="info") == [
        {"level": "info", "data": {"day": "2026-07-28"}, "logger": "a"}
    ]
    assert told(wrote(level="info", data=object()), level="info") == []
    assert told(wrote(level="info"), wrote(level="loud", data=1), level="info") == []


def test_the_shapes_that_the_readme_shows_are_told() -> None:
    written = re.findall(r"^write\((.+)\)$", (CHECKOUT / "README.md").read_text(), re.MULTILINE)
    chunks = [("custom", ast.literal_eval(each)) for each in written]
    progress, message = told(*chunks, level="debug")
    assert progress == {"progressToken": "t", **chunks[0][1]}
    assert message == chunks[1][1]
