"""The user that agents see."""

import copy
import pickle
from dataclasses import dataclass
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph_sdk import Auth
from pydantic import BaseModel

from handler.users import User


@dataclass
class Person:
    identity: str
    org: str
    permissions: tuple[str, ...] = ("read",)


class Model(BaseModel):
    identity: str
    org: str
    permissions: list[str] = ["read"]


class Bare:
    """Has what an object needs at least, and more that it does not tell."""

    identity = "ada"
    org = "acme"
    permissions = ("read",)


class Abstract(Bare):
    @property
    def display_name(self) -> str:
        raise NotImplementedError


FORMS: list[Any] = [
    {"identity": "ada", "org": "acme", "permissions": ["read"]},
    Person("ada", "acme"),
    Model(identity="ada", org="acme"),
    Bare(),
    Abstract(),
]


@pytest.mark.parametrize("said", FORMS, ids=lambda said: type(said).__name__)
def test_every_form_gives_the_members_as_attributes(said: Any) -> None:
    user = User.of(said)
    assert (user.identity, user.display_name, user.is_authenticated) == ("ada", "ada", True)
    assert list(user.permissions) == ["read"]
    assert user.org == "acme"
    assert isinstance(user, Auth.types.BaseUser)


@pytest.mark.parametrize("said", FORMS[:3], ids=lambda said: type(said).__name__)
def test_every_form_that_tells_its_members_gives_them_as_items(said: Any) -> None:
    user = User.of(said)
    assert user["org"] == user.get("org") == "acme"
    assert "org" in user
    assert {"identity", "display_name", "is_authenticated", "permissions"} <= set(user)
    with pytest.raises(KeyError):
        user["missing"]
    with pytest.raises(AttributeError):
        _ = user.missing


def test_an_id_alone_is_a_user() -> None:
    user = User.of("ada")
    assert (user.identity, list(user.permissions)) == ("ada", [])


@pytest.mark.parametrize("said", [None, "", {}, {"identity": ""}, {"identity": 5}, 5, object()])
def test_nobody_is_no_user(said: Any) -> None:
    with pytest.raises(ValueError, match="identity"):
        User.of(said)


@pytest.mark.parametrize("said", FORMS, ids=lambda said: type(said).__name__)
def test_a_user_shows_nothing_and_is_stored_by_nothing(said: Any) -> None:
    user = User.of(said)
    assert "acme" not in f"{user!r}{user}{ {'user': user} }"
    assert copy.deepcopy(user) is copy.copy(user) is user
    with pytest.raises(TypeError, match="not stored"):
        pickle.dumps(user)
    for serde in (JsonPlusSerializer(), JsonPlusSerializer(pickle_fallback=True)):
        with pytest.raises(TypeError):
            serde.dumps_typed({"user": user})
