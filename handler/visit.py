"""One HTTP request, as far as a source of identity may look at it."""

from dataclasses import dataclass

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.types import Message

from handler.body import Body
from handler.headers import Headers


@dataclass(frozen=True, slots=True)
class Visit:
    """A request whose body has not been read yet."""

    http: Request
    headers: Headers
    body: Body

    @property
    def query(self) -> QueryParams:
        """The parameters in the URL."""
        return self.http.query_params

    def request(self) -> Request:
        """The request for code that is not ours: it reads the body within the bound, and leaves it
        to be read again."""
        given = False

        async def receive() -> Message:
            nonlocal given
            if given:
                return await self.http.receive()
            body, given = await self.body.read(), True
            return {"type": "http.request", "body": body, "more_body": False}

        return Request(self.http.scope, receive)
