"""One field of a form: a property's JSON Schema, written as MCP writes it, or refused.

Pure module. A keyword that fields do not have is never dropped: the schema is refused, naming the
field, the keyword, and what to write instead. What Pydantic writes in its own way is rewritten
without loss: a local reference becomes what it refers to, a type or null becomes the type, a
constant a choice of one.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, cast

from core import plain, validation
from core.cannot_ask import CannotAsk

Schema: TypeAlias = dict[str, Any]

FORMATS: Final = ("email", "uri", "date", "date-time")

INSTEAD: Final[Mapping[str, str]] = {
    "exclusiveMinimum": 'Use "minimum" (in Pydantic ge instead of gt).',
    "exclusiveMaximum": 'Use "maximum" (in Pydantic le instead of lt).',
    "uniqueItems": "Use a list instead of a set: no choice is accepted twice.",
    "anyOf": "Give the field one type.",
    "oneOf": 'Give the field one type, or a "const" and a "title" to each choice.',
    "allOf": "Give the field one type.",
    "format": f"Fields have the formats {', '.join(FORMATS)}.",
    "items": "A list is a choice among strings: use list[Literal[...]] or a list of an Enum.",
    "enum": 'Choices are strings: use Literal["1", "2"] and convert the answer in the node.',
    "const": 'Choices are strings: use Literal["1"] and convert the answer in the node.',
    "examples": "Write the examples into the description.",
}
OTHERWISE: Final = (
    "Leave it out of the response schema, say it in a description, and check it in the node after"
    " interrupt()."
)

_DESCRIBING: Final = frozenset({"type", "title", "description", "default"})
_KEYWORDS: Final[Mapping[str, frozenset[str]]] = {
    "string": _DESCRIBING | {"minLength", "maxLength", "format"},
    "choice": _DESCRIBING | {"enum", "enumNames", "oneOf"},
    "number": _DESCRIBING | {"minimum", "maximum"},
    "integer": _DESCRIBING | {"minimum", "maximum"},
    "boolean": _DESCRIBING,
    "array": _DESCRIBING | {"items", "minItems", "maxItems"},
}
"""What a field of each kind may say."""


def field(name: str, schema: Any, document: Schema) -> tuple[Schema, bool]:
    """A field as MCP writes it, and whether its schema lets it be null.

    Args:
        schema: one that a JSON Schema validator has accepted as part of the document.
        document: what local references refer to.

    Raises:
        CannotAsk: fields do not have what it says.
        validation.Unusable: a reference in it leads nowhere.
    """
    said, optional = flatten(schema, document, f'The field "{name}"')
    said = _const_as_enum(said)
    kind = _kind(name, said)
    for keyword in said:
        if keyword not in _KEYWORDS[kind]:
            raise foreign(name, keyword)
    if optional and said.get("default", ...) is None:
        del said["default"]
    if kind == "choice":
        return _choice(name, said, document), optional
    if kind == "array":
        return {**said, "items": _items(name, said.get("items"), document)}, optional
    if said.get("format", FORMATS[0]) not in FORMATS:
        raise foreign(name, "format", f' "{said["format"]}"')
    return said, optional


def flatten(schema: Any, document: Schema, subject: str) -> tuple[Schema, bool]:
    """The schema without references and without null, and whether it allowed null."""
    optional = False
    for _ in range(plain.DEPTH):
        if not isinstance(schema, dict):
            raise CannotAsk(f"{subject} has no type. Give it one.")
        said = cast(Schema, schema)
        if "$ref" in said:
            schema = validation.follow(said, document)
            continue
        rest = _without_null(said)
        if rest is None:
            return dict(said), optional
        schema, allowed = rest
        optional = optional or allowed
    raise CannotAsk(f"{subject} refers to itself. A form is flat: end the recursion.")


def foreign(name: str, keyword: str, detail: str = "") -> CannotAsk:
    """The refusal of a keyword, with what to write instead."""
    instead = INSTEAD.get(keyword, OTHERWISE)
    return CannotAsk(
        f'The field "{name}" uses "{keyword}"{detail}, which forms do not have. {instead}'
    )


def _without_null(schema: Schema) -> tuple[Any, bool] | None:
    """One step towards a schema of one type that is not null; None when no step is left."""
    kinds: Any = schema.get("type")
    if isinstance(kinds, list):
        types = [kind for kind in cast("list[str]", kinds) if kind != "null"]
        if len(types) == 1:
            return {**schema, "type": types[0]}, "null" in kinds
    for keyword in ("anyOf", "oneOf"):
        options: list[Any] = schema.get(keyword, [])
        rest = [option for option in options if option != {"type": "null"}]
        if len(rest) == 1 and len(options) == 2 and isinstance(rest[0], dict):
            outer = {name: value for name, value in schema.items() if name != keyword}
            return validation.merged(cast(Schema, rest[0]), outer), True
    choices: list[Any] = schema.get("enum", [])
    if None in choices:
        return {**schema, "enum": [choice for choice in choices if choice is not None]}, True
    return None


def _const_as_enum(said: Schema) -> Schema:
    if not isinstance(said.get("const"), str) or "enum" in said:
        return said
    return {
        "enum" if keyword == "const" else keyword: [value] if keyword == "const" else value
        for keyword, value in said.items()
    }


def _kind(name: str, said: Schema) -> str:
    kind: Any = said.get("type")
    if kind in (None, "string") and ("enum" in said or "oneOf" in said):
        return "choice"
    if isinstance(kind, str) and kind in _KEYWORDS:
        return kind
    if kind == "object" or "properties" in said:
        raise CannotAsk(f'The field "{name}" is an object. Ask for its parts as fields.')
    if unknown := [keyword for keyword in said if keyword not in _DESCRIBING]:
        raise foreign(name, unknown[0])
    raise CannotAsk(
        f'The "type" of the field "{name}" is none that forms have. Make it a string, a number, an'
        " integer, a boolean, a choice or a list of choices."
    )


def _choice(name: str, said: Schema, document: Schema) -> Schema:
    choice = said if "type" in said else {"type": "string", **said}
    if "oneOf" in said:
        if beside := said.keys() & {"enum", "enumNames"}:
            raise foreign(name, min(beside), " beside oneOf")
        return {**choice, "oneOf": _titled(name, "oneOf", said["oneOf"], document)}
    _check_texts(name, "enum", said["enum"])
    if "enumNames" in said:
        _check_texts(name, "enumNames", said["enumNames"])
        if len(said["enumNames"]) != len(said["enum"]):
            raise foreign(name, "enumNames", " of another length than enum")
    return choice


def _items(name: str, items: Any, document: Schema) -> Schema:
    """The choices of a list and nothing else: the title of an item says what the field's does."""
    if not isinstance(items, dict):
        raise foreign(name, "items")
    item, optional = flatten(items, document, f'The field "{name}"')
    item = _const_as_enum(item)
    said = item.keys() - {"type", "title", "description"}
    if optional or item.get("type", "string") != "string" or len(said) != 1:
        raise foreign(name, "items")
    [keyword] = said
    if keyword == "enum":
        _check_texts(name, "items", item["enum"])
        return {"type": "string", "enum": item["enum"]}
    if keyword not in ("anyOf", "oneOf"):
        raise foreign(name, "items")
    return {"anyOf": _titled(name, "items", item[keyword], document)}


def _titled(name: str, keyword: str, options: list[Any], document: Schema) -> list[Schema]:
    """Choices that each have a title."""
    titled: list[Schema] = []
    for option in options:
        choice, optional = flatten(option, document, f'The field "{name}"')
        const = choice.get("const")
        other = choice.keys() - {"type", "const", "title"}
        if optional or other or not isinstance(const, str):
            raise foreign(name, keyword)
        titled.append({"const": const, "title": choice.get("title", const)})
    return titled


def _check_texts(name: str, keyword: str, values: Any) -> None:
    texts = cast("list[Any]", values) if isinstance(values, list) else []
    if not texts or not all(isinstance(text, str) for text in texts):
        raise foreign(name, keyword, " of something else than strings")
