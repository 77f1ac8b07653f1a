"""LangGraph's custom auth: who calls, and what the rules let that caller keep and resume."""

import asyncio
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from core.catalog import CatalogError
from core.rounds import CANNOT_RESUME
from tests.in_process import deployment
from tests.rules import AUTHENTICATE, OWNED, project
from tests.served import CHECKOUT, error, result
from tests.tables import everything, rows

pytestmark = pytest.mark.anyio

SECRET = "s3cr3t-t0k3n-that-is-kept-nowhere"
ADA, BOB = f"ada~{SECRET}", f"bob~{SECRET}"


def rule(where: str, *body: str) -> str:
    """A handler for some place below `auth`."""
    lines = "\n    ".join(body)
    return f"@auth.{where}\nasync def _{abs(hash(where))}(ctx, value):\n    {lines}\n"


def said(answer: dict[str, Any]) -> str:
    return answer["content"][0]["text"]


def untouched(database: str) -> bool:
    """Whether nothing is kept of any call."""
    return not any(rows(database).values())


# Who calls.


async def test_the_user_reaches_the_agent_as_langgraph_has_it(
    database: str, tmp_path: Path
) -> None:
    async with deployment(database, project(tmp_path)) as here:
        told = json.loads(said(result(await here.call("tells", ADA))))
        assert told["said"] == f"ada may ask, with {len(SECRET)} characters"


async def test_a_resumed_run_has_the_user_of_the_request_that_resumed_it(
    database: str, tmp_path: Path
) -> None:
    async with deployment(database, project(tmp_path, OWNED)) as here:
        asked = result(await here.call("asks", ADA))
        ended = result(await here.call("asks", "ada~new", asked=asked))
        assert json.loads(said(ended))["said"] == "ada may ask, with 3 characters"


async def test_neither_secret_nor_user_is_in_any_table_or_log(
    database: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    async with deployment(database, project(tmp_path)) as here:
        asked = result(await here.call("asks", ADA))
        kept = everything(database)
        assert "What is your name?" in kept
        result(await here.call("asks", ADA, asked=asked))
        assert error(await here.call("asks", BOB, asked=asked))["code"] == -32602
        ended = everything(database)
    for text in (kept, ended, caplog.text):
        assert SECRET not in text
        assert asked["requestState"] not in text
    for text in (kept, caplog.text):  # what the agent itself told in the end is its own affair
        assert not re.search(r"\bada\b", text), "not by chance within an id"


PARAMETERS = """
from langgraph_sdk import Auth

auth = Auth()


@auth.authenticate
async def authenticate(
    request, scope, body, path, method, path_params, query_params, headers, authorization, more=5
):
    assert (path, method, path_params, more) == ("/mcp", "POST", {}, 5)
    assert query_params["a"] == "b"
    assert headers[b"authorization"].decode() == authorization == request.headers["Authorization"]
    assert scope["type"] == "http"
    assert (await request.json()) == body
    assert body["method"] == "tools/call"
    return "ada"
"""


async def test_authenticate_gets_whatever_it_asks_for(database: str, tmp_path: Path) -> None:
    config = project(tmp_path, authenticate=PARAMETERS)
    async with deployment(database, config) as here:
        here.http.params = {"a": "b"}
        assert result(await here.call("asks", ADA))["resultType"] == "input_required"


THREADED = """
from langgraph_sdk import Auth
from core import account

auth = Auth()


@auth.authenticate
def authenticate(authorization):
    assert account.current().correlation
    return "ada"
"""


async def test_nodes_that_take_every_thread_keep_nobody_from_being_identified(
    database: str, tmp_path: Path
) -> None:
    loop, free = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    node = loop.run_in_executor(None, free.wait)
    try:
        async with deployment(database, project(tmp_path, authenticate=THREADED)) as here:
            assert result(await asyncio.wait_for(here.post("tools/list"), 5))["tools"]
    finally:
        free.set()
        await node


FORMS = {
    "an id": 'return "ada"',
    "a mapping": 'return {"identity": "ada"}',
    "permissions and an id": 'return ["ask"], "ada"',
    "an object": "return type('User', (), {'identity': 'ada', 'token': ''})()",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=list(FORMS))
@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_every_form_of_a_user_is_the_same_caller(
    database: str, tmp_path: Path, form: str, kind: str
) -> None:
    head = f"from langgraph_sdk import Auth\nauth = Auth()\n@auth.authenticate\n{kind} f():\n    "
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    async with (
        deployment(database, project(first)) as here,
        deployment(database, project(second, authenticate=head + form)) as there,
    ):
        asked = result(await here.call("asks", "ada~"))
        repeated = await there.call("asks", inputResponses={}, requestState=asked["requestState"])
        assert result(repeated)["requestState"] == asked["requestState"]


DENIALS = {
    "raise Auth.exceptions.HTTPException(status_code=401, detail='Who?')": (401, "Who?"),
    "raise Auth.exceptions.HTTPException(status_code=403, detail='Not you.')": (403, "Not you."),
    "raise Auth.exceptions.HTTPException(status_code=429)": (429, "Too Many Requests"),
    "from starlette.exceptions import HTTPException; raise HTTPException(401, 'So?')": (401, "So?"),
    "assert not authorization": (401, "These credentials are not valid here."),
    "return None": (401, "These credentials are not valid here."),
    "return False": (401, "These credentials are not valid here."),
    "return {'identity': 'ada', 'is_authenticated': False}": (
        401,
        "These credentials are not valid here.",
    ),
    "return type('U', (), {'identity': 'ada', 'is_authenticated': False})()": (
        401,
        "These credentials are not valid here.",
    ),
}


@pytest.mark.parametrize("code", list(DENIALS))
async def test_whom_authenticate_refuses_gets_nothing(
    database: str, tmp_path: Path, code: str
) -> None:
    status, message = DENIALS[code]
    async with deployment(database, project(tmp_path, authenticate=authenticating(code))) as here:
        refused = await here.call("tells", ADA)
        assert (refused.status_code, error(refused)["message"]) == (status, message)
        assert refused.json()["id"] == 7
        assert ("www-authenticate" in refused.headers) == (status == 401)
        listed = await here.post("tools/list")
        assert error(listed)


PASSED_ON: dict[str, dict[str, str]] = {
    "429, headers={'Retry-After': 30, 'Content-Length': '5'}": {"retry-after": "30"},
    "401, headers={'WWW-Authenticate': 'Own realm=here'}": {"www-authenticate": "Own realm=here"},
    "403, headers={'X-Why': 'because'}": {"x-why": "because"},
}


@pytest.mark.parametrize("raised", list(PASSED_ON))
async def test_the_header_fields_of_a_refusal_are_passed_on_but_for_those_of_the_body(
    database: str, tmp_path: Path, raised: str
) -> None:
    code = authenticating(f"raise Auth.exceptions.HTTPException({raised})")
    async with deployment(database, project(tmp_path, authenticate=code)) as here:
        refused = await here.call("tells", ADA)
    assert error(refused)["code"] == -32600
    assert PASSED_ON[raised].items() <= dict(refused.headers).items()
    assert len(refused.headers.get_list("www-authenticate")) == (refused.status_code == 401)


def authenticating(code: str) -> str:
    head = "from langgraph_sdk import Auth\nauth = Auth()\n@auth.authenticate\n"
    return f"{head}async def authenticate(authorization: str = ''):\n    {code}\n"


FAULTS = [
    "raise ValueError(authorization)",
    "raise Auth.exceptions.HTTPException(status_code=500, detail=authorization)",
    "raise Auth.exceptions.HTTPException(429, headers={'X': 'a\\r\\nSet-Cookie: b'})",
    "raise Auth.exceptions.HTTPException(429, headers={'X: y': 'a'})",
    "return 5",
    "return {'identity': ''}",
    "return ('a', 'b', 'c')",
    "return authorization.nothing",
]


@pytest.mark.parametrize("code", FAULTS)
async def test_an_authenticate_that_fails_lets_nobody_in_and_its_text_is_logged_nowhere(
    database: str, tmp_path: Path, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    async with deployment(database, project(tmp_path, authenticate=authenticating(code))) as here:
        refused = error(await here.call("tells", ADA))
        assert (refused["code"], refused["message"]) == (-32603, "Internal error")
        assert refused["data"]["correlationId"] in caplog.text
        assert "custom auth failed in authenticate" in caplog.text
        assert SECRET not in caplog.text


async def test_a_body_that_is_too_large_is_read_by_no_handler(
    database: str, tmp_path: Path
) -> None:
    code = authenticating("return 'ada'").replace("authorization: str = ''", "request, body=None")
    code = code.replace("return 'ada'", "await request.body(); return 'ada'")
    config = project(tmp_path, authenticate=code)
    async with deployment(database, config, environ={"INTERMEZZO_MAX_BODY_BYTES": "500"}) as here:
        assert (await here.call("tells", ADA, arguments={"a": "x" * 600})).status_code == 413


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("auth = 5", "it is a int"),
        ("from langgraph_sdk import Auth\nauth = Auth()", "it lets everybody in"),
        ("import nowhere", "No module named 'nowhere'"),
        ("other = 5", "has no attribute 'auth'"),
        (
            AUTHENTICATE.replace("authorization: str | None", "token, user"),
            "authenticate wants token, user; it may ask for request",
        ),
    ],
)
async def test_a_custom_auth_that_can_not_work_keeps_the_server_from_starting(
    database: str, tmp_path: Path, code: str, told: str
) -> None:
    from handler.identity import choose
    from handler.resources import Resources
    from handler.settings import Settings

    resources = Resources(Settings(config=project(tmp_path, authenticate=code)))
    with pytest.raises(CatalogError) as raised:
        choose(resources.settings, resources.catalog)
    assert "auth.path: ./auth.py:auth: " in str(raised.value)
    assert told in str(raised.value)


async def test_a_list_is_private_and_asks_who_calls(database: str, tmp_path: Path) -> None:
    async with deployment(database, project(tmp_path)) as here:
        assert (await here.post("tools/list")).status_code == 401
        listed = result(await here.post("tools/list", headers={"Authorization": f"Bearer {ADA}"}))
        assert listed["cacheScope"] == "private"


# What the rules let a caller do.


async def test_without_rules_a_call_is_kept_for_its_caller_alone(
    database: str, tmp_path: Path
) -> None:
    async with deployment(database, project(tmp_path)) as here:
        asked = result(await here.call("asks", ADA))
        foreign = await here.call("asks", BOB, asked=asked)
        assert foreign.status_code == 400
        assert error(foreign)["message"] == "Invalid or expired requestState"
        assert not result(await here.call("asks", ADA, asked=asked)).get("isError")


DENYING = ["return False", "raise Auth.exceptions.HTTPException(status_code=403)", "assert False"]


@pytest.mark.parametrize("denial", DENYING)
@pytest.mark.parametrize(
    "where",
    [
        "on.threads.create",
        "on.threads.update",
        "on.threads",
        "on",
        "on(actions='create')",
        "on(resources='threads', actions=['create', 'update'])",
        "on(resources='threads')",
    ],
)
async def test_a_caller_who_may_not_create_or_update_a_thread_is_told_when_a_tool_pauses(
    database: str, tmp_path: Path, where: str, denial: str
) -> None:
    async with deployment(database, project(tmp_path, rule(where, denial))) as here:
        paused = result(await here.call("asks", ADA))
        assert paused["isError"] is True
        assert said(paused) == CANNOT_RESUME
        assert CANNOT_RESUME == (
            "This tool paused to ask for human input, and this call can't be resumed."
        )
        assert not result(await here.call("tells", ADA)).get("isError")
    assert untouched(database)


async def test_the_most_specific_rule_decides(database: str, tmp_path: Path) -> None:
    rules = (
        rule("on", "return False"),
        rule("on.threads.create", "return True"),
        rule("on.threads.update", "return None"),
        rule("on.threads.read", "return {}"),
    )
    async with deployment(database, project(tmp_path, *rules)) as here:
        asked = result(await here.call("asks", ADA))
        assert not result(await here.call("asks", ADA, asked=asked)).get("isError")


@pytest.mark.parametrize("denial", DENYING)
async def test_a_caller_who_may_not_read_the_thread_has_a_state_like_a_forged_one(
    database: str, tmp_path: Path, denial: str
) -> None:
    async with deployment(database, project(tmp_path, rule("on.threads.read", denial))) as here:
        asked = result(await here.call("asks", ADA))
        refused = await here.call("asks", ADA, asked=asked)
        forged = await here.call("asks", ADA, asked={**asked, "requestState": "forged"})
        assert refused.status_code == forged.status_code == 400
        assert refused.content == forged.content
        assert error(refused)["code"] == -32602


SWITCH = """
import pathlib

def allowed(what):
    return not (pathlib.Path(__file__).parent / what).exists()
"""


@pytest.mark.parametrize("action", ["read", "update", "create_run"])
async def test_what_was_taken_from_a_caller_leaves_the_round_as_it_was(
    database: str, tmp_path: Path, action: str
) -> None:
    config = project(tmp_path, SWITCH, rule(f"on.threads.{action}", "return allowed('denied')"))
    async with deployment(database, config) as here:
        asked = result(await here.call("asks", ADA))
        (tmp_path / "denied").touch()
        refused = await here.call("asks", ADA, asked=asked)
        match action:
            case "read":
                assert error(refused)["message"] == "Invalid or expired requestState"
            case "update":
                assert said(result(refused)) == CANNOT_RESUME
            case _:
                assert refused.status_code == 403
        (tmp_path / "denied").unlink()
        assert not result(await here.call("asks", ADA, asked=asked)).get("isError")


async def test_a_rule_that_names_runs_decides_who_may_run(database: str, tmp_path: Path) -> None:
    only_asks = "return value['metadata']['graph_id'] == 'asks'"
    config = project(tmp_path, rule("on.threads.create_run", only_asks))
    async with deployment(database, config) as here:
        assert result(await here.call("asks", ADA))["resultType"] == "input_required"
        refused = await here.call("tells", ADA)
        assert refused.status_code == 403
        assert error(refused)["message"] == "This caller may not run this tool."


# Filters.


async def test_what_belongs_to_its_maker_is_resumed_by_its_maker(
    database: str, tmp_path: Path
) -> None:
    async with deployment(database, project(tmp_path, OWNED)) as here:
        asked = result(await here.call("asks", ADA))
        assert error(await here.call("asks", BOB, asked=asked))["code"] == -32602
        assert not result(await here.call("asks", ADA, asked=asked)).get("isError")


async def test_a_filter_alone_marks_what_is_made_under_it(database: str, tmp_path: Path) -> None:
    rules = rule("on.threads", "return {'owner': ctx.user.identity}")
    async with deployment(database, project(tmp_path, rules)) as here:
        asked = result(await here.call("asks", ADA))
        assert not result(await here.call("asks", ADA, asked=asked)).get("isError")


@pytest.mark.parametrize(
    ("made", "wanted", "resumed"),
    [
        ("{'owner': 'ada'}", "{'owner': 'ada'}", True),
        ("{'owner': 'ada'}", "{'owner': {'$eq': 'bob'}}", False),
        ("{'team': ['ada', 'eve']}", "{'team': {'$contains': 'ada'}}", True),
        ("{'team': ['eve']}", "{'team': {'$contains': ['ada']}}", False),
        ("{'owner': 'eve'}", "{'$or': [{'owner': 'ada'}, {'owner': 'eve'}]}", True),
        ("{}", "{'owner': 'ada'}", False),
        ("{}", "{'graph_id': 'asks'}", True),
        ("{'owner': 'a\\0b'}", "{'owner': 'a\\0b'}", True),
    ],
)
@pytest.mark.parametrize("action", ["read", "update", "create_run"])
async def test_a_filter_is_compared_with_what_the_thread_was_kept_with(
    database: str, tmp_path: Path, made: str, wanted: str, resumed: bool, action: str
) -> None:
    config = project(
        tmp_path,
        SWITCH,
        rule("on.threads.create", f"value['metadata'].update({made})"),
        rule(f"on.threads.{action}", f"return None if allowed('filtering') else {wanted}"),
    )
    async with deployment(database, config) as here:
        asked = result(await here.call("asks", ADA))
        before = rows(database)
        (tmp_path / "filtering").touch()
        answer = await here.call("asks", ADA, asked=asked)
        if resumed:
            assert not result(answer).get("isError")
            return
        if action == "update":
            assert said(result(answer)) == CANNOT_RESUME
        else:
            assert error(answer)["message"] == "Invalid or expired requestState"
        assert rows(database) == before
        # Nothing of it is held: at once the round is answered by who may.
        (tmp_path / "filtering").unlink()
        assert not result(await here.call("asks", ADA, asked=asked)).get("isError")


async def test_a_thread_that_would_not_fit_its_own_filter_is_not_made(
    database: str, tmp_path: Path
) -> None:
    rules = rule("on.threads.create", "return {'team': {'$contains': 'ada'}}")
    async with deployment(database, project(tmp_path, rules)) as here:
        assert said(result(await here.call("asks", ADA))) == CANNOT_RESUME
    assert untouched(database)


RULE_FAULTS = [
    "raise ValueError(ctx.user['token'])",
    "return 5",
    "return 0",
    "return 'yes'",
    "return {'owner': {'$ne': 'ada'}}",
    "value['metadata'] = object()",
    "value['metadata']['x'] = float('nan')",
    "value['metadata']['x'] = '\\ud800'",
]


@pytest.mark.parametrize("code", RULE_FAULTS)
async def test_a_rule_that_fails_keeps_nothing_and_its_text_is_logged_nowhere(
    database: str, tmp_path: Path, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    config = project(tmp_path, rule("on.threads.create", code))
    async with deployment(database, config) as here:
        assert error(await here.call("asks", ADA))["code"] == -32603
    assert "custom auth failed in threads.create" in caplog.text
    assert SECRET not in caplog.text
    assert untouched(database)


async def test_a_rule_knows_who_asks_for_what(database: str, tmp_path: Path) -> None:
    seen = rule(
        "on",
        "import pathlib, json",
        "told = [ctx.resource, ctx.action, ctx.user.identity, [*ctx.permissions], sorted(value)]",
        "with (pathlib.Path(__file__).parent / 'notes').open('a') as notes:",
        "    print(json.dumps(told), file=notes)",
    )
    async with deployment(database, project(tmp_path, seen)) as here:
        asked = result(await here.call("asks", ADA))
        await here.call("asks", ADA, asked=asked)
    told = [json.loads(line) for line in (tmp_path / "notes").read_text().splitlines()]
    assert told == [
        ["threads", "create", "ada", ["ask"], ["if_exists", "metadata", "thread_id"]],
        ["threads", "update", "ada", ["ask"], ["action", "metadata", "thread_id"]],
        ["threads", "read", "ada", ["ask"], ["run_id", "thread_id"]],
        ["threads", "update", "ada", ["ask"], ["action", "metadata", "thread_id"]],
    ]


async def test_the_custom_auth_in_the_readme_keeps_its_word(database: str, tmp_path: Path) -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n(from langgraph_sdk import Auth\n.*?)```", readme, re.DOTALL)
    config = project(tmp_path, authenticate=shown)
    async with deployment(database, config) as here:
        assert (await here.call("asks", "anything else")).status_code == 401
        fields = {"Authorization": "Bearer open sesame"}
        asked = result(await here.call("asks", headers=fields))
        assert not result(await here.call("asks", asked=asked, headers=fields)).get("isError")
    assert "owner" in everything(database)
