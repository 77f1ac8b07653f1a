"""Callers that AWS identified before the event came: API Gateway's authorizers, and IAM.

What is read stands in the event's `requestContext`, which the platform writes: a header, which a
client writes, is never looked at. It is believed only of a request that came as an event, and only
in the one shape that the deployment names: an API that somebody adds beside it identifies nobody.

    http-api-jwt      authorizer.jwt.claims      JWT authorizer of an HTTP API
    http-api-lambda   authorizer.lambda          Lambda authorizer of an HTTP API
    rest-api-cognito  authorizer.claims          Cognito authorizer of a REST API
    rest-api-lambda   authorizer                 Lambda authorizer of a REST API
    iam               authorizer.iam             IAM, at a function URL or an HTTP API
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from core.caller import Caller
from handler.challenge import Challenge
from handler.principal import principal
from handler.users import User, configurable
from handler.visit import Visit

EVENT: Final = "aws.event"
"""Where the event stands in the ASGI scope. Only the Lambda entry point puts it there."""

PRINCIPAL_KEY: Final = "principalId"
"""What a Lambda authorizer calls its principal, unless it has a name of its own for it."""


@dataclass(frozen=True, slots=True)
class _Known:
    """Whom a gateway named."""

    issuer: str
    subject: str
    client: str = ""
    permissions: tuple[str, ...] = ()


class Gateway:
    """Identifies callers by what one kind of gateway says of them.

    Args:
        shape: a name of `SHAPES`.
        principal_key: the member of a Lambda authorizer's context that names the caller.
    """

    def __init__(self, shape: str, *, principal_key: str, challenge: Challenge) -> None:
        self._read, self._payload = SHAPES[shape]
        self._shape = shape
        self._key = principal_key
        self._challenge = challenge

    async def identify(self, visit: Visit) -> Caller:
        """Whom the event names.

        Raises:
            HttpRefusal: the request is no such event, or names nobody.
        """
        event = visit.http.scope.get(EVENT)
        if not isinstance(event, dict):
            raise self._challenge.missing("the request is no event of a gateway")
        members = cast("dict[str, Any]", event)
        if members.get("version") != self._payload:
            raise self._challenge.missing(f"the event has not the shape of {self._shape}")
        authorizer = _members(_members(members.get("requestContext")).get("authorizer"))
        known = self._read(authorizer, self._key)
        if known is None:
            raise self._challenge.missing(f"{self._shape}: the event names no caller")
        user = User({"identity": known.subject, "permissions": list(known.permissions)})
        return Caller(
            principal=principal(known.issuer, known.subject, known.client),
            configurable=configurable(user, known.permissions),
        )


def _http_jwt(authorizer: Mapping[str, Any], key: str) -> _Known | None:
    token = _members(authorizer.get("jwt"))
    scopes = token.get("scopes")
    permissions = cast("list[str]", scopes) if isinstance(scopes, list) else []
    return _claimed(_members(token.get("claims")), tuple(permissions))


def _rest_cognito(authorizer: Mapping[str, Any], key: str) -> _Known | None:
    claims = _members(authorizer.get("claims"))
    return _claimed(claims, tuple(str(claims.get("scope", "")).split()))


def _claimed(claims: Mapping[str, Any], permissions: tuple[str, ...]) -> _Known | None:
    issuer, subject = _text(claims.get("iss")), _text(claims.get("sub"))
    client = _text(claims.get("client_id")) or _text(claims.get("azp"))
    return _Known(issuer, subject, client, permissions) if issuer and subject else None


def _http_lambda(authorizer: Mapping[str, Any], key: str) -> _Known | None:
    return _authorized(_members(authorizer.get("lambda")), key)


def _authorized(context: Mapping[str, Any], key: str) -> _Known | None:
    subject = _text(context.get(key))
    return _Known("lambda-authorizer", subject) if subject else None


def _iam(authorizer: Mapping[str, Any], key: str) -> _Known | None:
    iam = _members(authorizer.get("iam"))
    subject = _text(iam.get("userArn"))
    # Everyone of an identity pool comes under one ARN.
    client = _text(_members(iam.get("cognitoIdentity")).get("identityId"))
    return _Known("iam", subject, client) if subject else None


_Read = Callable[[Mapping[str, Any], str], _Known | None]

SHAPES: Final[Mapping[str, tuple[_Read, str | None]]] = {
    "http-api-jwt": (_http_jwt, "2.0"),
    "http-api-lambda": (_http_lambda, "2.0"),
    "rest-api-cognito": (_rest_cognito, None),
    "rest-api-lambda": (_authorized, None),
    "iam": (_iam, "2.0"),
}
"""How each shape is read, and which payload version its events have; those of REST have none."""


def _members(value: object) -> Mapping[str, Any]:
    """Of an object; anything else has none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """A string, or a number that an authorizer gave as one; empty for anything else."""
    if isinstance(value, bool):
        return ""
    return str(value) if isinstance(value, str | int) else ""
