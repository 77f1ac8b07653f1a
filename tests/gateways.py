"""What stands between HTTP and a function: gateways, whose events have different shapes.

The shapes are those of the files in `tests/events/`, which `sam local invoke --event` takes as they
are.
"""

import base64
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from tests.listening import Handler, listening
from tests.runtime_api import Function, FunctionError
from tests.served import message

EVENTS: Final = Path(__file__).parent / "events"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request as it comes to a gateway."""

    method: str
    path: str
    query: str
    headers: Sequence[tuple[str, str]]
    body: bytes
    base64: bool = False

    def joined(self) -> dict[str, str]:
        """Headers by lower-case name, several values in one."""
        joined: dict[str, str] = {}
        for name, value in self.headers:
            known = joined.get(name.lower())
            joined[name.lower()] = value if known is None else f"{known},{value}"
        return joined

    def text(self) -> dict[str, Any]:
        """The members that every event has for a body."""
        if not self.base64:
            return {"body": self.body.decode() or None, "isBase64Encoded": False}
        return {"body": base64.b64encode(self.body).decode(), "isBase64Encoded": True}


def request(
    method: str, *, id: Any = 1, headers: Mapping[str, str] | None = None, **params: Any
) -> HttpRequest:
    """A request of the newest revision, as a client sends it."""
    fields, body = message(method, id=id, headers=headers, **params)
    sent = {
        "Content-Type": "application/json",
        "Host": "abc.execute-api.eu-west-1.amazonaws.com",
        **fields,
    }
    return HttpRequest(
        method="POST",
        path="/mcp",
        query="",
        headers=list(sent.items()),
        body=json.dumps(body).encode(),
    )


def shape(name: str) -> dict[str, Any]:
    """A recorded event."""
    return json.loads((EVENTS / f"{name}.json").read_bytes())


def http_api(request: HttpRequest, *, stage: str = "$default") -> dict[str, Any]:
    """Payload 2.0, of an HTTP API. A named stage stands before the path."""
    return _payload_2(shape("http_api"), request, stage)


def staged_http_api(request: HttpRequest) -> dict[str, Any]:
    return http_api(request, stage="prod")


def function_url(request: HttpRequest) -> dict[str, Any]:
    return _payload_2(shape("function_url"), request, "$default")


def _payload_2(event: dict[str, Any], request: HttpRequest, stage: str) -> dict[str, Any]:
    headers = request.joined()
    cookies = headers.pop("cookie", None)
    path = request.path if stage == "$default" else f"/{stage}{request.path}"
    event |= {"rawPath": path, "rawQueryString": request.query, "headers": headers}
    event["requestContext"]["stage"] = stage
    event["requestContext"]["http"] |= {"method": request.method, "path": path}
    event |= request.text()
    if cookies is not None:
        event["cookies"] = cookies.split("; ")
    if event["body"] is None:
        del event["body"]
    return event


def rest_api(request: HttpRequest) -> dict[str, Any]:
    """Payload 1.0, of a REST API: headers in the client's spelling, the last value and all."""
    event = shape("rest_api")
    several: dict[str, list[str]] = {}
    for name, value in request.headers:
        several.setdefault(name, []).append(value)
    event |= {"path": request.path, "httpMethod": request.method, **request.text()}
    event |= {"headers": dict(request.headers), "multiValueHeaders": several}
    event["pathParameters"] = {"proxy": request.path.strip("/")}
    if query := parse_qsl(request.query):
        event["queryStringParameters"] = dict(query)
        event["multiValueQueryStringParameters"] = {name: [value] for name, value in query}
    event["requestContext"] |= {"httpMethod": request.method, "path": f"/prod{request.path}"}
    return event


def load_balancer(request: HttpRequest) -> dict[str, Any]:
    """Of an Application Load Balancer, which leaves a query as it was encoded."""
    event = shape("load_balancer")
    event |= {"path": request.path, "httpMethod": request.method, **request.text()}
    event["headers"] = request.joined()
    event["body"] = event["body"] or ""
    return event


Gateway = Callable[[HttpRequest], dict[str, Any]]

GATEWAYS: Final[Mapping[str, Gateway]] = {
    "HTTP API": http_api,
    "HTTP API with a named stage": staged_http_api,
    "REST API": rest_api,
    "function URL": function_url,
    "load balancer": load_balancer,
}


_CLAIMS: Final = {
    "iss": "https://login.example.com/",
    "sub": "ada",
    "client_id": "desktop",
    "exp": "17",
}
ARN: Final = "arn:aws:sts::123456789012:assumed-role/people/ada@example.com"

HTTP_JWT: Final = {"jwt": {"claims": _CLAIMS, "scopes": ["call"]}}
IAM: Final = {"iam": {"userArn": ARN, "accountId": "123456789012", "cognitoIdentity": None}}

AUTHORIZERS: Final[Mapping[str, tuple[dict[str, Any], str | None]]] = {
    "http-api-jwt": (HTTP_JWT, "2.0"),
    "http-api-lambda": ({"lambda": {"principalId": "ada", "user": "ada@example.com"}}, "2.0"),
    "rest-api-cognito": ({"claims": {**_CLAIMS, "scope": "call list"}}, None),
    "rest-api-lambda": (
        {"principalId": "ada", "integrationLatency": 5, "user": "ada@example.com"},
        None,
    ),
    "iam": (IAM, "2.0"),
}
"""What an event has of its caller, and its version, by what the setting calls the shape."""


@contextmanager
def behind(gateway: Gateway, function: Function) -> Generator[str]:
    """The URL of a function's MCP endpoint behind a gateway."""

    class Serve(_Serve):
        def pass_on(self, request: HttpRequest) -> tuple[int, list[tuple[str, str]], bytes]:
            return passed_on(function, gateway(request))

    with listening(Serve) as url:
        yield f"{url}/mcp"


def passed_on(
    function: Function, event: dict[str, Any]
) -> tuple[int, list[tuple[str, str]], bytes]:
    """A function's response as a gateway passes it on; its own words where there is none."""
    try:
        answer: dict[str, Any] = function.invoke(event)
    except FunctionError as error:
        status = 504 if error.kind == "Sandbox.Timedout" else 502
        words = b'{"message":"Internal server error"}'
        return status, [("Content-Type", "application/json")], words
    body: str = answer.get("body") or ""
    content = base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
    single: dict[str, str] = answer.get("headers") or {}
    several: dict[str, list[str]] = answer.get("multiValueHeaders") or {}
    headers = list(single.items())
    for name, values in several.items():
        headers = [each for each in headers if each[0].lower() != name.lower()]
        headers += [(name, value) for value in values]
    headers += [("Set-Cookie", cookie) for cookie in answer.get("cookies") or ()]
    return answer["statusCode"], [_renamed(name, value) for name, value in headers], content


def call(function: Function, name: str, **params: Any) -> dict[str, Any]:
    """The JSON-RPC response to a call of a tool through an HTTP API."""
    params = {"name": name, "arguments": {}, **params}
    status, headers, body = passed_on(function, http_api(request("tools/call", **params)))
    assert status in (200, 400), (status, body, function.log())
    assert dict(headers)["content-type"] == "application/json"
    return json.loads(body)


def result(function: Function, name: str, **params: Any) -> dict[str, Any]:
    """The result of a call that must have one."""
    response = call(function, name, **params)
    assert "result" in response, response
    return response["result"]


def _renamed(name: str, value: str) -> tuple[str, str]:
    """API Gateway keeps this header's name for itself."""
    if name.lower() == "www-authenticate":
        return "x-amzn-Remapped-WWW-Authenticate", value
    return name, value


class _Serve(Handler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16

    def pass_on(self, request: HttpRequest) -> tuple[int, list[tuple[str, str]], bytes]:
        raise NotImplementedError

    def do_POST(self) -> None:
        path, _, query = self.path.partition("?")
        request = HttpRequest(
            method=self.command,
            path=path,
            query=query,
            headers=list(self.headers.items()),
            body=self.sent(),
        )
        status, headers, content = self.pass_on(request)
        others = [field for field in headers if field[0].lower() != "content-length"]
        self.answer(status, content, others)

    do_GET = do_DELETE = do_POST
