"""MCP content blocks that an agent returned under `mcp_content`.

Blocks in MCP's own shape pass as they are; those of LangChain's messages (its two generations of
content blocks, and the shapes of OpenAI and Anthropic that it passes on) are converted. All are
checked against the protocol's types.
"""

from collections.abc import Callable
from typing import Any, Final, cast

Block = dict[str, Any]


class BadContent(Exception):
    """A list is not MCP content; the text says which block and why."""


def content(blocks: Any) -> list[Block]:
    """The content blocks of a result.

    Args:
        blocks: JSON; a list of blocks, or of strings, each of which is a text.

    Raises:
        BadContent: something in it is no content block.
    """
    if not isinstance(blocks, list):
        raise BadContent("mcp_content must be a list of content blocks")
    listed = cast("list[Any]", blocks)
    converted = [_converted(block, index) for index, block in enumerate(listed)]
    return [_checked(block, index) for index, block in enumerate(converted)]


def _checked(block: Block, index: int) -> Block:
    # Costs as much as the web framework, and few agents return content.
    import mcp_types
    from pydantic import ValidationError

    types = {
        "audio": mcp_types.AudioContent,
        "image": mcp_types.ImageContent,
        "resource": mcp_types.EmbeddedResource,
        "resource_link": mcp_types.ResourceLink,
        "text": mcp_types.TextContent,
    }
    kind = block.get("type")
    if kind not in types:
        raise BadContent(f"mcp_content[{index}].type is {kind!r}, not one of {', '.join(types)}")
    try:
        types[kind].model_validate(block)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(("", *(str(part) for part in first["loc"])))
        raise BadContent(f"mcp_content[{index}]{where} of type {kind}: {first['msg']}") from error
    return block


def _converted(block: Any, index: int) -> Block:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    if not isinstance(block, dict):
        raise BadContent(f"mcp_content[{index}] is no content block but {type(block).__name__}")
    known = cast("Block", block)
    convert = _CONVERTERS.get(str(known.get("type")))
    return (convert(known, index) if convert else None) or known


def _media(block: Block, index: int) -> Block | None:
    """An image, audio, video or file block of LangChain; None when it is MCP's already."""
    data, mime_type, url = _payload(block)
    name = str(block.get("filename") or block.get("title") or f"{block['type']}-{index + 1}")
    if data is not None:
        if block["type"] in ("image", "audio"):
            return {"type": block["type"], "data": data, "mimeType": mime_type}
        resource = {"uri": f"attachment:///{name}", "blob": data}
        return {"type": "resource", "resource": _with_type(resource, mime_type)}
    if url is not None:
        return _with_type({"type": "resource_link", "uri": url, "name": name}, mime_type)
    if "file_id" in block or block.get("source_type") == "id":
        raise BadContent(
            f"mcp_content[{index}] names a file at a model provider, which clients can't read"
        )
    return None


def _payload(block: Block) -> tuple[str | None, str | None, str | None]:
    """The Base64 data or else the URL of a block, and its media type, of whichever shape it is."""
    source = block.get("source")
    if isinstance(source, dict):  # Anthropic
        inner = cast("Block", source)
        return inner.get("data"), inner.get("media_type"), inner.get("url")
    mime_type = block.get("mime_type")
    data = block.get("base64") or (block.get("data") if "source_type" in block else None)
    url = block.get("url")
    if data is None and isinstance(url, str) and url.startswith("data:"):
        return _data_url(url)
    return data, mime_type, url


def _data_url(url: str) -> tuple[str | None, str | None, str | None]:
    head, comma, data = url.removeprefix("data:").partition(",")
    if not comma or not head.endswith(";base64"):
        return None, None, url
    return data, head.removesuffix(";base64"), None


def _image_url(block: Block, index: int) -> Block | None:
    image: Any = block.get("image_url")
    url = cast("Block", image).get("url") if isinstance(image, dict) else image
    return _media({"type": "image", "url": url}, index) if isinstance(url, str) else None


def _input_audio(block: Block, index: int) -> Block | None:
    audio = block.get("input_audio")
    if not isinstance(audio, dict):
        return None
    inner = cast("Block", audio)
    mime_type = f"audio/{inner.get('format')}"
    return _media({"type": "audio", "base64": inner.get("data"), "mime_type": mime_type}, index)


def _text(block: Block, index: int) -> Block | None:
    """A text of LangChain carries an id, an index and provider's extras beside the text."""
    if "source_type" in block or block["type"] == "text-plain":
        text = block.get("text", block.get("url"))
        return {"type": "text", "text": text} if text is not None else _media(block, index)
    lean = {key: value for key, value in block.items() if key in ("type", "text", "annotations")}
    if isinstance(lean.get("annotations"), list):  # citations, not MCP's annotations
        del lean["annotations"]
    return {**lean, **({"_meta": block["_meta"]} if "_meta" in block else {})}


def _with_type(block: Block, mime_type: str | None) -> Block:
    return {**block, "mimeType": mime_type} if mime_type else block


_CONVERTERS: Final[dict[str, Callable[[Block, int], Block | None]]] = {
    "audio": _media,
    "file": _media,
    "image": _media,
    "image_url": _image_url,
    "input_audio": _input_audio,
    "text": _text,
    "text-plain": _text,
    "video": _media,
}
