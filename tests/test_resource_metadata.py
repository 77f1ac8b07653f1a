"""Where the document stands by which clients find out where to log in."""

import pytest

from handler.resource_metadata import ResourceMetadata

SERVERS = ("https://login.example.com",)


@pytest.mark.parametrize(
    ("resource", "url", "paths"),
    [
        (
            "https://h.example/mcp",
            "https://h.example/.well-known/oauth-protected-resource/mcp",
            (
                "/.well-known/oauth-protected-resource/mcp",
                "/.well-known/oauth-protected-resource",
            ),
        ),
        (
            "https://h.example:8443/x/mcp",
            "https://h.example:8443/.well-known/oauth-protected-resource/x/mcp",
            (
                "/.well-known/oauth-protected-resource/x/mcp",
                "/.well-known/oauth-protected-resource",
            ),
        ),
        (
            "https://h.example",
            "https://h.example/.well-known/oauth-protected-resource",
            ("/.well-known/oauth-protected-resource",),
        ),
    ],
)
def test_it_stands_where_the_path_of_the_resource_leads_and_at_the_root(
    resource: str, url: str, paths: tuple[str, ...]
) -> None:
    metadata = ResourceMetadata(resource=resource, servers=SERVERS)
    assert metadata.url == url
    assert metadata.paths == paths


def test_it_says_what_a_client_needs_and_leaves_out_what_is_not_known() -> None:
    bare = ResourceMetadata(resource="https://h.example/mcp", servers=SERVERS)
    assert bare.document() == {
        "resource": "https://h.example/mcp",
        "authorization_servers": ["https://login.example.com"],
        "bearer_methods_supported": ["header"],
    }
    full = ResourceMetadata(
        resource="https://h.example/mcp", servers=SERVERS, scopes=("call",), name="agents"
    )
    assert full.document()["scopes_supported"] == ["call"]
    assert full.document()["resource_name"] == "agents"
