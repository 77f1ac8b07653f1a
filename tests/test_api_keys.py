"""API keys: whose they are, and how a list of them is checked."""

import pytest

from core import account
from core.account import Account
from handler.api_keys import SHORTEST, ApiKeys, problems
from handler.challenge import Challenge
from handler.credentials import KEY_HEADER as HEADER
from handler.refusals import BadCredentials, HttpRefusal, Unauthorized
from tests.visits import bearer, visit

pytestmark = pytest.mark.anyio

ADA, NEW_ADA, ROBOT = (
    f"{name}-key-0123456789-abcdefghijklmnop" for name in ("ada", "new", "robot")
)
KEYS = ApiKeys([f"ada:{ADA}", f"robot:{ROBOT}", f"ada:{NEW_ADA}"], challenge=Challenge())


async def refusal(*fields: tuple[str, str]) -> HttpRefusal:
    with pytest.raises(HttpRefusal) as raised:
        await KEYS.identify(visit(*fields))
    return raised.value


async def test_a_key_is_its_name_and_the_account_tells_the_name_alone() -> None:
    account.begin(Account(correlation="1"))
    caller = await KEYS.identify(visit((HEADER, ROBOT)))
    assert caller.configurable["langgraph_auth_user"].identity == "robot"
    assert account.current().facts() == {"correlation": "1", "key": "robot"}


async def test_a_key_comes_in_its_header_or_as_a_bearer_token() -> None:
    bare, token = visit((HEADER.lower(), ADA)), visit(bearer(ADA))
    assert (await KEYS.identify(bare)).principal == (await KEYS.identify(token)).principal


async def test_two_keys_of_one_name_are_one_caller_and_others_are_others() -> None:
    callers = [await KEYS.identify(visit((HEADER, key))) for key in (ADA, NEW_ADA, ROBOT)]
    old, new, robot = [caller.principal for caller in callers]
    assert old == new != robot


@pytest.mark.parametrize("key", ["", "x", ADA[:-1], f"{ADA}x", ADA.swapcase(), "ada", "é" * 40])
async def test_what_is_no_key_is_refused_with_a_challenge(key: str) -> None:
    told = await refusal((HEADER, key))
    assert isinstance(told, Unauthorized)
    assert told.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert isinstance(await refusal(), Unauthorized)


async def test_two_keys_are_malformed_even_of_one_caller() -> None:
    assert isinstance(await refusal((HEADER, ADA), bearer(ADA)), BadCredentials)
    assert isinstance(await refusal((HEADER, ADA), (HEADER, ADA)), BadCredentials)


def test_a_good_list_has_no_problem() -> None:
    assert problems([f"ada:{ADA}", f"ada:{NEW_ADA}", f"a-b_c.1:{ROBOT}"]) == []


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (ADA, "entry 2 is not name:key"),
        (f":{ADA}", "entry 2 is not name:key"),
        (f"a b:{ADA}", "entry 2 is not name:key"),
        ("ada:", "entry 2 is not name:key"),
        (f"bob:{ADA} {ADA}", "entry 2 is not name:key"),
        ("bob:" + ADA[: SHORTEST - 1], "the key of bob needs 32 random characters"),
        ("bob:" + "a" * 50, "the key of bob needs 32 random characters"),
        (f"bob:{ROBOT}", "the key of bob stands twice"),
    ],
)
def test_what_is_wrong_with_an_entry_is_told_without_the_key(entry: str, told: str) -> None:
    (problem,) = problems([f"robot:{ROBOT}", entry])
    assert problem.startswith(told)
    assert ADA[: SHORTEST - 1] not in problem
    assert ROBOT not in problem
