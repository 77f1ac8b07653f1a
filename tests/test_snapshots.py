"""What a state holds now, whatever becomes of it later."""

from typing import Any

from core.snapshots import snapshot


def test_lists_dicts_and_sets_are_copied_at_any_depth_and_what_else_they_hold_is_shared() -> None:
    leaf = object()
    state: dict[str, Any] = {"a": [{"b": {1}, "c": leaf}], "d": ({}, [])}
    kept = snapshot(state)
    assert kept == state
    state["a"][0]["b"].add(2)
    state["a"].append(3)
    assert kept == {"a": [{"b": {1}, "c": leaf}], "d": state["d"]}
    assert kept["d"] is state["d"]


def test_an_object_in_two_places_or_in_itself_stays_so() -> None:
    shared: list[Any] = [1]
    shared.append(shared)
    kept = snapshot({"a": shared, "b": shared})
    assert kept["a"] is kept["b"] is kept["a"][1]
    assert kept["a"] is not shared


def test_nesting_that_exhausts_the_stack_harms_nobody() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert snapshot({"a": deep})["a"] is deep
    while deep:  # a list that deep can't be let go of at once
        deep = deep.pop()


def test_subclasses_are_somebody_elses() -> None:
    class Own(list[int]):
        pass

    own = Own([1])
    assert snapshot({"a": own})["a"] is own
