"""The filters of LangGraph's auth handlers."""

from typing import Any

import pytest

from handler.filters import fixed, matches

THREAD: dict[str, Any] = {"owner": "ada", "team": ["ada", "bob"], "level": 3, "none": None}


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"owner": "ada"},
        {"owner": {"$eq": "ada"}},
        {"owner": "ada", "level": 3},
        {"none": None},
        {"team": {"$contains": "bob"}},
        {"team": {"$contains": ["bob", "ada"]}},
        {"team": {"$contains": []}},
        {"team": ["ada", "bob"]},
        {"$or": [{"owner": "eve"}, {"owner": "ada"}]},
        {"$and": [{"owner": "ada"}, {"team": {"$contains": "bob"}}]},
        {"level": 3, "$or": [{"$and": [{"owner": "ada"}, {"level": 3}]}, {"owner": "eve"}]},
    ],
)
def test_a_thread_that_is_meant_matches(wanted: dict[str, Any]) -> None:
    assert matches(THREAD, wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        {"owner": "bob"},
        {"owner": {"$eq": "bob"}},
        {"owner": "ada", "level": 4},
        {"missing": None},
        {"missing": {"$eq": None}},
        {"team": {"$contains": "eve"}},
        {"team": {"$contains": ["ada", "eve"]}},
        {"owner": {"$contains": "a"}},
        {"missing": {"$contains": []}},
        {"$or": [{"owner": "eve"}, {"owner": "bob"}]},
        {"$and": [{"owner": "ada"}, {"level": 4}]},
        {"owner": "bob", "$or": [{"owner": "ada"}, {"level": 3}]},
    ],
)
def test_a_thread_that_is_not_meant_does_not_match(wanted: dict[str, Any]) -> None:
    assert not matches(THREAD, wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        {"owner": {"$ne": "bob"}},
        {"owner": {}},
        {"owner": {"$eq": "ada", "$contains": "a"}},
        {"owner": {"name": "ada"}},
        {"$not": {"owner": "bob"}},
        {"$or": []},
        {"$or": [{"owner": "ada"}]},
        {"$or": {"owner": "ada"}},
        {"$and": [{"owner": "ada"}, 5]},
        {"owner": "nobody", "level": {"$gt": 1}},
        {"$or": [{"owner": "ada"}, {"level": {"$gt": 1}}]},
    ],
)
def test_what_is_no_filter_is_an_error_whatever_it_meets(wanted: dict[str, Any]) -> None:
    for metadata in (THREAD, dict[str, Any]()):
        with pytest.raises(ValueError, match="filter"):
            matches(metadata, wanted)


def test_a_filter_that_is_nested_without_end_is_an_error() -> None:
    wanted: dict[str, Any] = {"owner": "ada"}
    for _ in range(1_000):
        wanted = {"$or": [wanted, wanted]}
    with pytest.raises(ValueError, match="deep"):
        matches(THREAD, wanted)


def test_what_a_filter_fixes_fits_it() -> None:
    wanted = {"owner": "ada", "level": {"$eq": 3}}
    assert fixed({**wanted, "team": {"$contains": "a"}, "$or": [{}, {}]}) == {
        "owner": "ada",
        "level": 3,
    }
    assert matches(fixed(wanted), wanted)
