"""A JSON Schema that values are checked against, here and never elsewhere.

Pure module. A reference to another document is not fetched. Formats are checked. Patterns run on an
engine that takes linear time, so no schema can stall the process. Messages are jsonschema-rs's own:
they are the ones that clients see.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import unquote

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

ANNOTATIONS: Final = frozenset({"title", "description", "default"})

_MOST: Final = 10
"""Misfits that are told of one value."""

_LONGEST: Final = 300
"""Characters of a reason: it quotes the value, and a value may be a megabyte."""


_SHORT: Final = 16_384
"""Characters of a schema that is kept compiled: a longer one has values of one call in it."""


class Unusable(Exception):
    """Nothing can be checked against the schema; the text says why."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Something about a value that does not fit.

    Attributes:
        field: the outermost property that it is about, or empty.
        reason: a sentence, which may quote the value.
    """

    field: str
    reason: str


def follow(schema: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """A schema with its `$ref` replaced by what it refers to in its document.

    Title, description and default beside the reference win over those at its target, as they do in
    Pydantic's schemas.

    Raises:
        Unusable: the reference leaves the document, leads nowhere or to no object, or a keyword
            beside it contradicts its target.
    """
    target = _target(schema["$ref"], document)
    beside = {keyword: value for keyword, value in schema.items() if keyword != "$ref"}
    return merged(target, beside)


def merged(inner: dict[str, Any], outer: dict[str, Any]) -> dict[str, Any]:
    """One schema that says what both say; the outer one names and describes.

    Raises:
        Unusable: they contradict each other.
    """
    for keyword in inner.keys() & outer.keys() - ANNOTATIONS:
        if inner[keyword] != outer[keyword]:
            raise Unusable(f'"{keyword}" is said twice, differently')
    return {**inner, **outer}


class Check:
    """A compiled schema."""

    __slots__ = ("_validator",)

    def __init__(self, schema: dict[str, Any]) -> None:
        """Compile a schema of plain JSON.

        Raises:
            Unusable: it is no JSON Schema, or a reference in it leads nowhere or elsewhere.
        """
        text = json.dumps(schema)
        self._validator = _kept(text) if len(text) <= _SHORT else _compiled(text)

    def misfits(self, value: Any) -> list[Misfit]:
        """What about a plain value does not fit: nothing when it fits, the first few otherwise."""
        errors = islice(self._validator.iter_errors(value), _MOST)
        return [Misfit(_field(error), _short(error.message)) for error in errors]


def _compiled(schema: str) -> "Validator":
    """The validator of a schema as JSON text."""
    import jsonschema_rs  # not at the top: lists and refusals do without it

    try:
        return jsonschema_rs.validator_for(
            json.loads(schema),
            validate_formats=True,
            retriever=_refuse,
            pattern_options=jsonschema_rs.RegexOptions(),
            # An address as it stands in an envelope, not "Ada <ada@example.com>".
            email_options=jsonschema_rs.EmailOptions(allow_display_text=False),
        )
    except jsonschema_rs.ValidationError as error:
        raise Unusable(_short(error.message)) from error
    except ValueError as error:
        raise Unusable(_short(str(error))) from error


_kept: Final = lru_cache(maxsize=256)(_compiled)
"""Agents ask the same questions again and again."""


def _target(reference: Any, document: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise Unusable(f"{reference} is another document, which is never fetched")
    target: Any = document
    for step in unquote(reference[1:]).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        target = cast("dict[str, Any]", target).get(name) if isinstance(target, dict) else None
    if not isinstance(target, dict) or reference[1:2] not in ("", "/"):
        raise Unusable(f"{reference} leads to no schema of an object")
    return cast("dict[str, Any]", target)


def _field(error: "ValidationError") -> str:
    if error.instance_path:
        return str(error.instance_path[0])
    return str(getattr(error.kind, "property", ""))  # of `required`: what is missing


def _short(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]}…"


def _refuse(uri: str) -> Any:
    raise ValueError(f"never fetched: {uri}")
