"""The README is executed: its agent asks, its requests get its answers, its settings are all."""

import json
import re
from pathlib import Path
from typing import Any

import httpx

from handler.settings import Settings, variables
from tests.served import Served, post, result, serving

CHECKOUT = Path(__file__).parent.parent
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")

ROUNDS = README.partition("## The two rounds")[2].partition("\n## ")[0]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_agent_in_the_readme_is_the_example_agent() -> None:
    [shown] = blocks(README.partition("## An agent that asks")[2].partition("\n## ")[0], "python")
    file = (CHECKOUT / "agents" / "region.py").read_text(encoding="utf-8")
    assert file.partition('"""\n\n')[2] == shown
    assert len([line for line in shown.splitlines() if line.strip()]) <= 15


def test_the_requests_in_the_readme_get_the_answers_in_the_readme(served: Served) -> None:
    requests, answers = blocks(ROUNDS, "http"), blocks(ROUNDS, "json")
    assert len(requests) == len(answers) == 2
    printed = json.loads(answers[0])["result"]["requestState"]
    given = printed
    for request, answer in zip(requests, answers, strict=True):
        head, _, body = request.partition("\n\n")
        headers = dict(line.split(": ", 1) for line in head.splitlines()[1:])
        sent = body.replace(printed, given).encode()
        got: dict[str, Any] = httpx.post(
            served.url, headers=headers, content=sent, timeout=30
        ).json()
        given = got["result"].get("requestState", given)
        assert json.loads(json.dumps(got).replace(given, printed)) == json.loads(answer)
    assert given != printed


def test_the_custom_auth_in_the_readme_lets_its_caller_pause_and_go_on(
    database: str, tmp_path: Path
) -> None:
    section = README.partition("## Who is calling")[2].partition("\n## ")[0]
    [shown] = blocks(section, "python")
    (tmp_path / "auth.py").write_text(shown, encoding="utf-8")
    config = tmp_path / "langgraph.json"
    content = {
        "dependencies": ["."],
        "graphs": {"region": f"{CHECKOUT}/agents/region.py:graph"},
        "auth": {"path": "./auth.py:auth"},
    }
    config.write_text(json.dumps(content), encoding="utf-8")
    ada = {"Authorization": "Bearer open sesame"}
    with serving(database, config=config) as process:
        assert post(process.url, "tools/list").status_code == 401
        asked = result(post(process.url, "tools/call", name="region", arguments={}, headers=ada))
        (key,) = asked["inputRequests"]
        ended = post(
            process.url,
            "tools/call",
            name="region",
            arguments={},
            headers=ada,
            requestState=asked["requestState"],
            inputResponses={key: {"action": "accept", "content": {"response": "here"}}},
        )
        assert "here" in result(ended)["content"][0]["text"]


def test_every_setting_stands_in_the_readme_as_the_code_has_it() -> None:
    table = README.partition("## Settings")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert rows == settings_rows()


def settings_rows() -> list[str]:
    """The README's rows of settings, made from the code."""
    rows: list[str] = []
    defaults = Settings()
    for variable, field in variables().items():
        default = field.metadata["shown"] or _shown(getattr(defaults, field.name))
        rows.append(f"| `{variable}` | {default} | {field.metadata['about']} |")
    return rows


def _shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return f"`{value}`" if value not in (None, "", (), frozenset[str]()) else ""


def test_every_word_of_the_makefile_that_the_readme_names_exists() -> None:
    makefile = (CHECKOUT / "Makefile").read_text(encoding="utf-8")
    words = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = set(re.findall(r"`make ([a-z]+)`", README)) | set(
        re.findall(r"^make ([a-z]+)$", README, re.MULTILINE)
    )
    assert named <= words
    assert {"run", "test", "check"} <= named


def test_every_file_that_the_readme_names_exists() -> None:
    for name in re.findall(r"`((?:core|handler|agents|migrations|tests)/[\w./-]*)`", README):
        assert (CHECKOUT / name).exists(), name
