"""A form: the fields that a JSON Schema describes, asked together.

Pure module. What leaves `content` fits the form and the whole schema that the form was made from,
and holds nothing that was not asked: a field that the form does not have is not delivered. The
title and description at the root go away, for the question's message describes the form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from core import fields, plain, validation
from core.answers import Unfit
from core.cannot_ask import CannotAsk
from core.fields import Schema
from core.validation import Misfit

RESPONSE: Final = "response"
"""The one field of a form whose schema is not an object."""

MOST_FIELDS: Final = 100
LARGEST: Final = 1024 * 1024
"""Bytes of a form's schema."""

# What a root may say that a form need not repeat: a field that is not asked is never delivered, so
# `additionalProperties` has nothing left to forbid; the others say nothing about content.
_AT_ROOT: Final = frozenset(
    {
        *("type", "properties", "required", "additionalProperties"),
        *("$defs", "definitions", "$schema", "$id", "$comment"),
        *("title", "description", "default", "examples", "deprecated"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form, and how its content becomes a value.

    Attributes:
        requested: the `requestedSchema`, as the client gets it.
        full: the schema it was made from.
        wrapped: whether the value is that of the one field `response`.
        nulls: fields that the schema requires but lets be null; left out they are null.
    """

    requested: Schema
    full: Schema
    wrapped: bool = False
    nulls: tuple[str, ...] = ()

    def content(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that were answered, in the form's order, each as the schema means it: 3.0 for
        an integer is 3.

        Raises:
            Unfit: a field does not fit, or a required one is missing.
        """
        asked: dict[str, Schema] = self.requested["properties"]
        content = {name: given[name] for name in asked if name in given}
        for name, value in content.items():
            _check_plain(name, value)
        _check_fit(self.requested, content)
        for name, value in content.items():
            content[name] = _meant(name, asked[name]["type"], value)
        for name in self.nulls:
            content.setdefault(name, None)
        _check_fit(self.full, self.value(content), field=RESPONSE if self.wrapped else "")
        return content

    def value(self, content: dict[str, Any]) -> Any:
        """What the agent gets for content that fits. An optional `response` left out is None."""
        return content.get(RESPONSE) if self.wrapped else content

    def as_json(self) -> dict[str, Any]:
        """What `from_json` reads back."""
        return {
            "requested": self.requested,
            "full": self.full,
            "wrapped": self.wrapped,
            "nulls": list(self.nulls),
        }

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Self:
        """The form that `as_json` told."""
        return cls(
            requested=entry["requested"],
            full=entry["full"],
            wrapped=entry["wrapped"],
            nulls=tuple(entry["nulls"]),
        )


def build(schema: Schema, *, wrap: bool = True) -> Form:
    """The form that asks for what a schema describes.

    Args:
        wrap: whether a schema of something else than an object becomes the one field `response`.

    Raises:
        CannotAsk: forms do not have what it says, or it is no JSON Schema.
    """
    _check_schema(schema)
    try:
        form = _build(schema, wrap=wrap)
    except validation.Unusable as error:
        raise _no_schema(error) from error
    _check_form(form.requested)
    return form


def _build(schema: Schema, *, wrap: bool) -> Form:
    root, optional = fields.flatten(schema, schema, "The response")
    if root.get("type", "object" if "properties" in root else None) == "object":
        return _object(root, schema)
    if not wrap:
        raise CannotAsk("A relayed form must describe an object with its fields as properties.")
    kept = {key: value for key, value in root.items() if key not in _AT_ROOT - {"type", "default"}}
    properties = {RESPONSE: fields.field(RESPONSE, kept, schema)[0]}
    required = [] if optional else [RESPONSE]
    return Form(requested=_requested(properties, required), full=schema, wrapped=True)


def _object(root: Schema, document: Schema) -> Form:
    for keyword in root:
        if keyword not in _AT_ROOT:
            instead = fields.INSTEAD.get(keyword, fields.OTHERWISE)
            raise CannotAsk(f'Its schema uses "{keyword}", which forms do not have. {instead}')
    properties: dict[str, Schema] = {}
    optional: set[str] = set()
    for name, schema in root.get("properties", {}).items():
        properties[name], may_be_null = fields.field(name, schema, document)
        if may_be_null:
            optional.add(name)
    required: list[str] = root.get("required", [])
    if unknown := [name for name in required if name not in properties]:
        raise CannotAsk(f'Its schema requires "{unknown[0]}", which it does not describe.')
    return Form(
        requested=_requested(properties, [name for name in required if name not in optional]),
        full=document,
        nulls=tuple(name for name in required if name in optional),
    )


def _requested(properties: dict[str, Schema], required: list[str]) -> Schema:
    members: Schema = {"properties": properties}
    if required:
        members["required"] = required
    return {**members, "type": "object"}


def _check_schema(schema: Schema) -> None:
    try:
        plain.check(schema)
        validation.Check(schema)
    except (plain.NotPlain, validation.Unusable) as error:
        raise _no_schema(error) from error


def _no_schema(error: Exception) -> CannotAsk:
    return CannotAsk(f"Its schema is no JSON Schema that answers can be checked against: {error}.")


def _check_form(requested: Schema) -> None:
    asked: dict[str, Schema] = requested["properties"]
    if not asked:
        raise CannotAsk(
            "Its schema describes no fields, and there is no empty form. Give it properties, or use"
            " response_schema=bool for a yes or no."
        )
    if len(asked) > MOST_FIELDS:
        raise CannotAsk(f"A form has at most {MOST_FIELDS} fields, and this one {len(asked)}.")
    if (size := plain.size(requested)) > LARGEST:
        raise CannotAsk(f"A form's schema has at most {LARGEST} bytes, and this one {size}.")
    _check_schema(requested)
    defaults = {name: field["default"] for name, field in asked.items() if "default" in field}
    for each in validation.Check({**requested, "required": []}).misfits(defaults):
        raise CannotAsk(f'The default of the field "{each.field}" is wrong: {each.reason}.')


def _check_plain(name: str, value: Any) -> None:
    try:
        plain.check(value)
    except plain.NotPlain as error:
        raise Unfit(Misfit(name, str(error))) from error


def _check_fit(schema: Schema, value: Any, *, field: str = "") -> None:
    misfits = validation.Check(schema).misfits(value)
    if misfits:
        raise Unfit(*(Misfit(field or each.field, each.reason) for each in misfits))


def _meant(name: str, kind: str, value: Any) -> Any:
    if kind == "integer" and isinstance(value, float):
        whole = int(value)
        _check_plain(name, whole)
        return whole
    if kind == "array" and len(set(value)) < len(value):
        raise Unfit(Misfit(name, "a choice is taken twice"))
    return value
