"""JSON Schemas of tools: what LangGraph derives from a graph's types, made fit to publish.

Pure module. Schemas go through untouched but for what MCP or its clients need: an object at the
root, one short definition in place of LangChain's dozen message classes, no definition that nothing
refers to, and of an output no more than LangGraph keeps.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, TypeAlias, cast

Schema: TypeAlias = dict[str, Any]

MESSAGE: Final[Schema] = {
    "type": "object",
    "description": "A chat message.",
    "properties": {
        "role": {
            "type": "string",
            "description": "Who speaks: user, assistant, system or tool.",
        },
        "content": {
            "description": "Text, or a list of content blocks.",
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}],
        },
    },
    "required": ["content"],
    "anyOf": [{"required": ["role"]}, {"required": ["type"]}],
}
"""What LangChain reads as a message: `role` and `content`, or its own `type` and `content`.

LangChain's own schema is 20 kB long and refuses the usual `{"role": "user", "content": "hi"}`,
which fits several of its message classes at once.
"""

HEADER: Final = "x-mcp-header"
"""A property that carries it is mirrored by clients into an `Mcp-Param-*` header."""

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUES: Final = frozenset({"const", "default", "enum", "examples"})
_NAMED: Final = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose members are schemas by name."""


def object_root(schema: Schema) -> Schema:
    """The schema; one whose root only refers to a definition (a recursive model) becomes that
    definition, because MCP wants to see `"type": "object"` at the root."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if name not in schema.get("$defs", {}):
        return schema
    # A recursive definition still refers to itself, so the definitions stay.
    return pruned({"$defs": schema["$defs"], **schema["$defs"][name]})


def wrapped(schema: Schema, name: str) -> Schema:
    """An object schema with the given one as its only property."""
    inner = {key: value for key, value in schema.items() if key not in ("$defs", "title")}
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    return {"type": "object", "properties": {name: inner}, "required": [name], **definitions}


def short_messages(schema: Schema) -> Schema:
    """The schema with LangChain's base message and each union of its messages told as `MESSAGE`."""
    replaced = _replace_messages(schema)
    if replaced == schema:
        return schema
    replaced["$defs"] = {**replaced.get("$defs", {}), "Message": MESSAGE}
    return pruned(replaced)


def mentions_messages(schema: Schema) -> bool:
    """Whether `short_messages` would find something to replace."""
    return any(_is_message(node) for node in _nodes(schema))


def without_property(schema: Schema, name: str) -> Schema:
    """The object schema without one property."""
    properties = {k: v for k, v in schema.get("properties", {}).items() if k != name}
    changed = {**schema, "properties": properties}
    if "required" in schema:
        changed["required"] = [each for each in schema["required"] if each != name]
    return pruned(changed)


def kept(schema: Schema) -> Schema:
    """Of an output's schema what LangGraph keeps, because clients drop a result that does not fit:
    a graph may leave any key out, and not every date of Python's is a `date-time`."""
    loose: Schema = _without_formats(schema)
    return {key: value for key, value in loose.items() if key != "required"}


def _without_formats(node: Any, *, by_name: bool = False) -> Any:
    if isinstance(node, list):
        return [_without_formats(each) for each in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    return {
        key: _without_formats(value, by_name=not by_name and key in _NAMED)
        if by_name or key not in _VALUES
        else value
        for key, value in cast("Schema", node).items()
        if by_name or key != "format"
    }


def header_problem(schema: Schema) -> str | None:
    """Why clients would drop a tool for its `x-mcp-header`; None when they would not.

    2026-07-28, Streamable HTTP, "Custom Headers from Tool Parameters": a token, no two alike but
    for case, on a string, integer or boolean that is reached through `properties` alone.
    """
    seen: set[str] = set()
    for path, node, reached in _places(schema, "", reached=True):
        if HEADER not in node:
            continue
        token = node[HEADER]
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            return f"{path}: {token!r} can't be part of a header's name"
        if token.casefold() in seen:
            return f"{path}: {token!r} is used twice"
        if not reached or node.get("type") not in ("boolean", "integer", "string"):
            return (
                f"{path}: {HEADER} may stand on a string, integer or boolean property only, one"
                " that can't be null and is in no list"
            )
        seen.add(token.casefold())
    return None


def pruned(schema: Schema) -> Schema:
    """The schema without the definitions that nothing in it refers to, however indirectly."""
    definitions: Schema = schema.get("$defs", {})
    body = {key: value for key, value in schema.items() if key != "$defs"}
    needed: set[str] = set()
    pending = [body]
    while pending:
        for name in _references(pending.pop()):
            if name in definitions and name not in needed:
                needed.add(name)
                pending.append(definitions[name])
    if needed:
        body["$defs"] = {name: each for name, each in definitions.items() if name in needed}
    return body


def _replace_messages(node: Any) -> Any:
    if isinstance(node, list):
        return [_replace_messages(each) for each in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    members = cast("Schema", node)
    if _is_message(members):
        rest = {key: each for key, each in members.items() if key not in ("oneOf", "$ref")}
        return {**rest, "$ref": "#/$defs/Message"}
    return {key: _replace_messages(value) for key, value in members.items()}


def _is_message(node: Schema) -> bool:
    choices = node.get("oneOf")
    union = isinstance(choices, list) and {"$ref": "#/$defs/HumanMessage"} in choices
    return union or node.get("$ref") == "#/$defs/BaseMessage"


def _nodes(node: Any) -> Iterator[Schema]:
    """Every JSON object in a schema."""
    if isinstance(node, dict):
        members = cast("Schema", node)
        yield members
        for value in members.values():
            yield from _nodes(value)
    elif isinstance(node, list):
        for each in cast("list[Any]", node):
            yield from _nodes(each)


def _places(node: Any, path: str, *, reached: bool) -> Iterator[tuple[str, Schema, bool]]:
    """Every schema in a schema, with its path and whether `properties` alone lead to it."""
    if isinstance(node, list):
        for each in cast("list[Any]", node):
            yield from _places(each, path, reached=False)
    if not isinstance(node, dict):
        return
    schema = cast("Schema", node)
    yield path, schema, reached
    for keyword, value in schema.items():
        if keyword in _NAMED and isinstance(value, dict):
            for name, each in cast("Schema", value).items():
                inner = f"{path}.{name}".lstrip(".")
                yield from _places(each, inner, reached=reached and keyword == "properties")
        elif keyword not in _VALUES:
            yield from _places(value, path, reached=False)


def _references(schema: Schema) -> Iterator[str]:
    for node in _nodes(schema):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/$defs/"):
            yield reference.removeprefix("#/$defs/").split("/")[0]
