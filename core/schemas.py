"""JSON Schemas of tools: what LangGraph derives from a graph's types, made fit to publish.

Pure module. Schemas go through untouched but for three things that MCP or its clients need: an
object at the root, one short definition in place of LangChain's dozen message classes, and no
definition that nothing refers to.
"""

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
}
"""What LangChain reads as a message: `role` and `content`, or its own `type` and `content`.

LangChain's own schema is 20 kB long and refuses the usual `{"role": "user", "content": "hi"}`,
which fits several of its message classes at once.
"""

_HUMAN: Final = "#/$defs/HumanMessage"


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
    """The schema with every union of LangChain's message classes replaced by `MESSAGE`."""
    replaced = _replace_messages(schema)
    if replaced == schema:
        return schema
    replaced["$defs"] = {**replaced.get("$defs", {}), "Message": MESSAGE}
    return pruned(replaced)


def mentions_messages(schema: Schema) -> bool:
    """Whether a union of LangChain's message classes is somewhere in the schema."""
    return any(_is_message_union(node) for node in _nodes(schema))


def without_property(schema: Schema, name: str) -> Schema:
    """The object schema without one property."""
    properties = {k: v for k, v in schema.get("properties", {}).items() if k != name}
    changed = {**schema, "properties": properties}
    if "required" in schema:
        changed["required"] = [each for each in schema["required"] if each != name]
    return pruned(changed)


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
    if _is_message_union(members):
        rest = {key: each for key, each in members.items() if key not in ("oneOf", "discriminator")}
        return {**rest, "$ref": "#/$defs/Message"}
    return {key: _replace_messages(value) for key, value in members.items()}


def _is_message_union(node: Schema) -> bool:
    choices = node.get("oneOf")
    return isinstance(choices, list) and {"$ref": _HUMAN} in choices


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


def _references(schema: Schema) -> Iterator[str]:
    for node in _nodes(schema):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/$defs/"):
            yield reference.removeprefix("#/$defs/").split("/")[0]
