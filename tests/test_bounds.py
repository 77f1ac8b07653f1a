"""How large an answer may be, counted as the platform counts it."""

import json

from hypothesis import given
from hypothesis import strategies as st

from core.bounds import fitting, size_of
from core.cannot_ask import PREFIX
from core.pending import Pending
from core.protocol import ToolResult, error_result, text
from core.questions import Round, ask

RESULT = ToolResult(content=[text('{"said": "a \\\\ and a \\n"}')])
ROUND = ask([Pending(id="1", value="Which region?", schema=None)])


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none() | st.lists(st.text())))
def test_the_size_is_that_of_a_string_in_another_document(content: dict[str, object]) -> None:
    body = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    assert size_of(content) + 2 == len(json.dumps(body, ensure_ascii=False).encode())


def test_without_a_bound_everything_fits() -> None:
    assert fitting(RESULT, None) is RESULT
    assert fitting(ROUND, None) is ROUND


def test_a_result_fits_up_to_the_bound_and_is_an_error_result_beyond() -> None:
    size = size_of(RESULT.as_result())
    assert fitting(RESULT, size) is RESULT
    assert fitting(RESULT, size - 1) == error_result(
        f"The result is too large: {size} bytes, of at most {size - 1}."
    )


def test_questions_that_are_too_large_can_not_be_asked() -> None:
    size = size_of(ROUND.requests)
    assert fitting(ROUND, size) is ROUND
    told = fitting(ROUND, size - 1)
    assert not isinstance(told, Round)
    assert told.is_error
    assert told.content[0]["text"].startswith(PREFIX)
