"""The user that an agent sees at `config["configurable"]["langgraph_auth_user"]`.

LangGraph puts it there, and agents read it as an object or as a mapping. It lives as long as the
request: nothing shows what it holds, and nothing can store it.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn, Self, cast

_TELLING: Final = frozenset(("dict", "get_secret_value", "model_dump"))
"""Methods by which LangGraph's serializer would read an object into a checkpoint."""


class User(Mapping[str, Any]):
    """A user by its members, as attributes and as items.

    Args:
        members: what is known of the user; `identity` at least.
        behind: an object that has further attributes.
    """

    def __init__(self, members: Mapping[str, Any], behind: Any = None) -> None:
        identity = members["identity"]
        defaults = {"display_name": identity, "is_authenticated": True, "permissions": ()}
        self._members: Mapping[str, Any] = {**defaults, **members}
        self._behind = behind

    @classmethod
    def of(cls, value: Any) -> Self:
        """The user that an `authenticate` handler returned: an id, a mapping, or an object.

        Raises:
            ValueError: it says nobody's identity.
        """
        if isinstance(value, cls):
            return value
        kind = type(value).__name__
        members: Mapping[str, Any]
        if isinstance(value, str):
            members = {"identity": value}
        elif isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
        else:
            members = _members(value)
        identity = members.get("identity")
        if not isinstance(identity, str) or not identity:
            raise ValueError(f"a {kind} without an identity, which is a string")
        return cls(members, None if isinstance(value, str | Mapping) else value)

    @property
    def identity(self) -> str:
        return self._members["identity"]

    @property
    def display_name(self) -> str:
        return self._members["display_name"]

    @property
    def is_authenticated(self) -> bool:
        return self._members["is_authenticated"]

    @property
    def permissions(self) -> Sequence[str]:
        return self._members["permissions"]

    def __getitem__(self, key: str) -> Any:
        return self._members[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in _TELLING:
            raise AttributeError(name)
        if name in self._members:
            return self._members[name]
        return getattr(self._behind, name)

    def __repr__(self) -> str:
        return "User(…)"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a user belongs to one request and is not stored")


def configurable(user: User, permissions: Sequence[str]) -> dict[str, Any]:
    """What an agent may read of its caller, under the names that LangGraph gives it."""
    return {
        "langgraph_auth_user": user,
        "langgraph_auth_user_id": user.identity,
        "langgraph_auth_permissions": list(permissions),
    }


def _members(value: Any) -> dict[str, Any]:
    """The members of an object: those that it tells, and those of every user."""
    told: Any = {}
    for name in ("model_dump", "dict"):
        if callable(tell := getattr(value, name, None)):
            told = tell()
            break
    else:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            told = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    usual = ("identity", "display_name", "is_authenticated", "permissions")
    # An abstract user may declare a member that it does not have.
    known = {name: found for name in usual if (found := _get(value, name)) is not None}
    return {**(told if isinstance(told, dict) else {}), **known}


def _get(value: Any, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except NotImplementedError:
        return None
