"""What Hypothesis makes: JSON of any kind, and schemas of forms with answers that fit them."""

import string
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

# A slow machine is no counterexample.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

NAMES = st.text(string.ascii_letters + "_ é🙂", min_size=1, max_size=8)

# Lone surrogates too: a JSON reader lets them through.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=12)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | TEXTS
    | st.sampled_from(["", "accept", "approve", "edit", "form", "url", "string", "object", "#"])
)

JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


def objects(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects that have some of these members, of any kind."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, JSON))


@st.composite
def _choices(draw: st.DrawFn) -> tuple[list[str], st.SearchStrategy[str]]:
    choices = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    return choices, st.sampled_from(choices)


@st.composite
def _string(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    low = draw(st.integers(0, 3))
    field: dict[str, Any] = {"type": "string"}
    if draw(st.booleans()):
        field |= {"minLength": low, "maxLength": low + 4}
    characters = st.characters(exclude_categories=("Cs",))
    return field, st.text(characters, min_size=low, max_size=low + 4)


@st.composite
def _formatted(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    format, values = draw(
        st.sampled_from(
            [
                ("date", st.dates().map(str)),
                ("date-time", st.datetimes().map(lambda each: each.isoformat() + "Z")),
                ("email", NAMES.map(lambda name: f"a{len(name)}@example.com")),
                ("uri", NAMES.map(lambda name: f"https://example.com/{len(name)}")),
            ]
        )
    )
    return {"type": "string", "format": format}, values


@st.composite
def _number(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    kind = draw(st.sampled_from(["integer", "number"]))
    low = draw(st.integers(-5, 5))
    field: dict[str, Any] = {"type": kind}
    if draw(st.booleans()):
        field |= {"minimum": low, "maximum": low + 10}
    whole = st.integers(low, low + 10)
    return field, whole if kind == "integer" else whole | st.floats(low, low + 10)


@st.composite
def _choice(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    choices, values = draw(_choices())
    titled = [{"const": choice, "title": choice.upper()} for choice in choices]
    return draw(
        st.sampled_from(
            [
                {"type": "string", "enum": choices},
                {"enum": choices},
                {"type": "string", "enum": choices, "enumNames": choices},
                {"type": "string", "oneOf": titled},
            ]
        )
    ), values


@st.composite
def _choice_list(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any]]:
    choices, values = draw(_choices())
    titled = [{"const": choice, "title": choice.upper()} for choice in choices]
    items = draw(st.sampled_from([{"type": "string", "enum": choices}, {"anyOf": titled}]))
    field: dict[str, Any] = {"type": "array", "items": items}
    if draw(st.booleans()):
        field |= {"minItems": 0, "maxItems": len(choices)}
    return field, st.lists(values, max_size=len(choices), unique=True)


_FIELDS = (
    _string()
    | _formatted()
    | _number()
    | st.just(({"type": "boolean"}, st.booleans()))
    | _choice()
    | _choice_list()
)


@st.composite
def lawful_fields(draw: st.DrawFn) -> tuple[dict[str, Any], st.SearchStrategy[Any], bool]:
    """A field's schema, what fits it, and whether null does."""
    field, values = draw(_FIELDS)
    if draw(st.booleans()):
        field = {**field, "title": draw(NAMES), "description": draw(NAMES)}
    if draw(st.integers(0, 3)) == 0:
        return {"anyOf": [field, {"type": "null"}]}, values, True
    return field, values, False


@st.composite
def lawful(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema that a form can ask for, and content that fits it, null left out."""
    names = draw(st.lists(NAMES, min_size=1, max_size=5, unique=True))
    properties: dict[str, Any] = {}
    content: dict[str, Any] = {}
    required: list[str] = []
    definitions: dict[str, Any] = {}
    for n, name in enumerate(names):
        field, values, nullable = draw(lawful_fields())
        if draw(st.booleans()):
            definitions[f"d{n}/~"] = field
            field = {"$ref": f"#/$defs/d{n}~1~0"}
        properties[name] = field
        needed = draw(st.booleans())
        if needed:
            required.append(name)
        if draw(st.booleans()) or (needed and not nullable):
            content[name] = draw(values)
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if draw(st.booleans()):
        schema |= {"title": "T", "description": "D", "additionalProperties": False}
    return {**schema, "$defs": definitions}, content


@st.composite
def unlawful(draw: st.DrawFn) -> dict[str, Any]:
    """A lawful schema with one thing in it that may be wrong, or no schema at all."""
    schema, _ = draw(lawful())
    name = draw(st.sampled_from(sorted(schema["properties"])))
    wrong: Any = draw(
        st.sampled_from(
            [
                {"type": "string", "pattern": "a+"},
                {"type": "integer", "exclusiveMinimum": 0},
                {"type": "object", "properties": {"a": {"type": "string"}}},
                {"type": "array", "items": {"type": "string"}},
                {"enum": [1, 2]},
                {"$ref": "#/$defs/nowhere"},
                {"$ref": "https://example.com/schema.json"},
                {"$ref": "#"},
                {},
                True,
            ]
        )
        | JSON
    )
    schema["properties"] = {**schema["properties"], name: wrong}
    return schema
