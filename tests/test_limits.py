"""The bounds of one process, over HTTP: answers to what is too much are JSON-RPC errors."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.conversation import AGENTS
from tests.processes import wait_for
from tests.served import error, post, result, serving


def test_a_call_that_finds_no_turn_is_told_to_come_again_and_a_list_needs_none(
    database: str, tmp_path: Path
) -> None:
    environ = {"INTERMEZZO_MAX_CONCURRENT_RUNS": "1", "INTERMEZZO_CALL_TIMEOUT": "8"}
    call = {"name": "done", "arguments": {"journal": str(tmp_path)}}
    (tmp_path / "hold-work").touch()
    with serving(database, config=AGENTS, environ=environ) as served, ThreadPoolExecutor() as pool:
        first = pool.submit(post, served.url, "tools/call", **call)
        wait_for(tmp_path / "held-work")
        turned_away = post(served.url, "tools/call", id=9, **call)
        assert turned_away.status_code == 200
        assert turned_away.json()["id"] == 9
        assert error(turned_away)["code"] == 1001
        assert error(turned_away)["data"]["retryAfterMs"] > 0
        assert result(post(served.url, "tools/list"))["tools"]
        (tmp_path / "hold-work").unlink()
        assert not result(first.result()).get("isError")
        assert not result(post(served.url, "tools/call", **call)).get("isError")
    assert (tmp_path / "ran").read_text().split() == ["work", "work"]
